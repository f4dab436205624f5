"""Sees whether a client's process waits: then nothing comes from it until something happens.

Linux shows the state of each thread in /proc. A thread that sleeps, or that is stopped, waits.
Elsewhere this cannot be seen: there each process seems to wait.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from fencepost.hunt.live.work_time import WorkTime

_WAITS = frozenset(b"STtZX")
"""States in which a thread does nothing (proc(5)); D, a wait for a disk, ends by itself."""
_ONE_THREAD = ("node", "nodejs")
"""Programs whose first thread does all the work. Others of Node collect garbage and compile."""
_POLLS = b"epoll"
"""In the name of the kernel's function in which the first thread of Node waits for messages and
timers. It sleeps for moments elsewhere, too: until another of its threads has done something."""


class Rest:
    """Watches the threads of a process. Reading a state takes some 5 us, so files stay open.

    `first_alone`: its first thread does all the work.
    """

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
        self._first = str(pid)
        self._files: dict[str, int] = {}
        self._work = WorkTime(pid)
        self.first_alone = self._named = False
        with suppress(OSError):
            self.first_alone = Path(f"/proc/{pid}/exe").readlink().name in _ONE_THREAD

    def waits(self) -> bool:
        """Whether all its threads wait."""
        if self.first_alone:
            return self._polls()
        return not self.works()

    def works(self) -> bool:
        """Whether some thread does not wait: it runs, or waits for the processor or a disk."""
        if not self._waits(self._first):
            return True
        try:
            threads = os.listdir(self._folder)
        except OSError:
            return False  # it has ended
        for gone in self._files.keys() - set(threads):
            os.close(self._files.pop(gone))
        return not all(self._waits(thread) for thread in threads)

    def worked_s(self) -> float:
        """Return the processor time that it has taken; 0 where that cannot be seen."""
        return (self._work.ns() or 0) / 1e9

    def _polls(self) -> bool:
        """Whether the first thread waits for messages and timers; a system that hides where threads
        sleep shows only whether they do."""
        try:
            where = os.pread(self._file("wchan"), 64, 0)
        except OSError:
            return True  # it has ended
        self._named = self._named or _POLLS in where
        return _POLLS in where or (not self._named and self._waits(self._first))

    def _file(self, name: str) -> int:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = os.open(f"{self._folder}/{self._first}/{name}", os.O_RDONLY)
        return file

    def _waits(self, thread: str) -> bool:
        try:
            file = self._files.get(thread)
            if file is None:
                file = self._files[thread] = os.open(f"{self._folder}/{thread}/stat", os.O_RDONLY)
            text = os.pread(file, 128, 0)
        except OSError:
            return True
        # The name of the program, which may have any characters, ends with the last parenthesis.
        return text[text.rfind(b")") + 2] in _WAITS if b")" in text else True

    def close(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])
