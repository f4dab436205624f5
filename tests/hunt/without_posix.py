"""Run fencepost without the Python modules that Windows lacks, and with spawned processes.

Windows and macOS spawn processes too. Python's own library and installed packages keep these
modules: they know which system they run on.
"""

from __future__ import annotations

import builtins
import multiprocessing
import sys
from types import ModuleType

MODULES = {"fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": (
        "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG chown chroot confstr fork forkpty "
        "getegid geteuid getgid getgroups getloadavg getpgid getsid getuid getxattr killpg "
        "memfd_create mkfifo mknod nice openpty pipe2 posix_fadvise posix_fallocate posix_spawn "
        "pread preadv pwrite register_at_fork sched_getaffinity sched_setscheduler sendfile "
        "setpgid setsid setuid statvfs sync sysconf uname wait waitid"
    ),
    "signal": (
        "ITIMER_REAL SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGPROF SIGQUIT SIGSTOP "
        "SIGTSTP SIGUSR1 SIGUSR2 alarm pthread_kill pthread_sigmask setitimer sigwait"
    ),
    "select": "epoll kqueue poll",
    "time": (
        "CLOCK_MONOTONIC CLOCK_REALTIME clock_gettime clock_settime pthread_getcpuclockid tzset"
    ),
    "socket": "AF_UNIX SCM_RIGHTS",
}  # fmt: skip


class Less(ModuleType):
    """A module without these names."""

    def __init__(self, whole: ModuleType, without: set[str]) -> None:
        super().__init__(whole.__name__)
        self.__dict__.update(
            (name, value) for name, value in vars(whole).items() if name not in without
        )

    def __setattr__(self, name: str, value: object) -> None:
        setattr(sys.modules[self.__name__], name, value)


_import = builtins.__import__
_less = {name: Less(_import(name), set(words.split())) for name, words in NAMES.items()}


def without(name, globals=None, locals=None, fromlist=(), level=0):
    who = str((globals or {}).get("__name__", ""))
    if level == 0 and (who == "fencepost" or who.startswith("fencepost.")):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}, asked for by {who}", name=name)
        if name in _less:
            return _less[name]
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = without

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    from fencepost.harness.__main__ import main

    main()
