"""The lines that servers write when they crash, by kind of server, with their sources.

Checked against the messages in the binaries of Redis 7.0.15, ZooKeeper 3.8.0, etcd 3.4.23,
PostgreSQL 15.20, MariaDB 10.11.18 and NATS 2.9.10. A line is listed only if the server ends by
it, or loses a process. Many that sound like it are not: Redis logs "Short read or OOM loading DB.
Unrecoverable error, aborting now." of a copy that its master did not complete, and ZooKeeper
"Exiting JVM with code 0" when it is asked to end.
"""

from __future__ import annotations

import re

_CRASHES = {
    "etcd": (
        # Go: runtime/panic.go, runtime/signal_unix.go.
        r"^(?:panic|fatal error|runtime error): ",
        r"^unexpected fault address|^SIG(?:SEGV|BUS|ILL|FPE|ABRT): ",
        # zap (zapcore/level.go), as JSON and as columns; capnslog, which etcd 3.4 has without zap.
        r"\"level\": ?\"(?:panic|dpanic|fatal)\"",
        r"\t(?:panic|dpanic|fatal|PANIC|DPANIC|FATAL)\t",
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ C \| ",
    ),
    "redis": (
        # debug.c: sigsegvHandler, _serverPanic, _serverAssert; server.c: redisOutOfMemoryHandler.
        r"REDIS BUG REPORT START|Guru Meditation|ASSERTION FAILED|crashed by signal",
        r"Out Of Memory allocating|Redis aborting for OUT OF MEMORY|zmalloc: Out of memory",
        # server.c: loadDataFromDisk; rdb.c: rdbReportError, rdbLoadRio.
        r"Fatal error loading the DB|Terminating server after rdb file reading failure",
        r"Wrong RDB checksum expected",
        r"FATAL: Data file was created with a Redis server configured to handle more",
        # aof.c: loadSingleAppendOnlyFile, aofLoadManifestFromFile, aofOpenIfNeededOnServerStart.
        r"(?:Bad file format|Unexpected end of file|Unrecoverable error) reading the append only",
        r"FATAL AOF MANIFEST FILE ERROR|Fatal error: can't open the (?:append log|AOF manifest)",
        r"Can't open the append-only file|Can't open or create append-only dir",
        r"Error reading the RDB (?:preamble of the AOF|base) file .*AOF loading aborted",
        # aof.c: flushAppendOnlyFile; replication.c: restartAOFAfterSYNC.
        r"Can't (?:recover from AOF write error|persist AOF for fsync error)",
        r"FATAL: this replica instance finished the synchronization",
        # config.c: loadServerConfig; server.c, acl.c, module.c, cluster.c, sentinel.c at the start.
        r"FATAL CONFIG FILE ERROR|Fatal error, can't open config file",
        r"Critical error while loading ACLs|Aborting Redis startup because of ACL errors",
        r"Can't load module from .*server aborting|Configured to not listen anywhere, exiting",
        r"Failed listening on port .*aborting|Fatal: [Cc]an't (?:initialize|update)",
        r"Unrecoverable error creating |Unrecoverable error: corrupted cluster config",
        r"Sentinel config file .*Exiting",
    ),
    "zookeeper": (
        # QuorumPeerMain, ZooKeeperServerMain.
        r"exiting abnormally",
        # ServiceUtils; 0 is an order to end.
        r"Exiting JVM with code [1-9]|Fatal error, JVM should exit with code [1-9]",
        # ZooKeeperCriticalThread, ZooKeeperServer, ZooKeeperServerListenerImpl, QuorumPeer.
        r"Severe unrecoverable error|Thread .{1,200} exits, error code [1-9]",
        r"Unable to load database on disk|Unable to run quorum server",
        # The JVM. Its options, which it prints at the start, contain the name of the error as well.
        r"(?<![=:])java\.lang\.OutOfMemoryError",
        r"A fatal error has been detected by the Java Runtime",
        r"insufficient memory for the Java Runtime|Error occurred during initialization of VM",
    ),
    "postgres": (
        # elog.c; mcxt.c.
        r"\bPANIC:  |\b(?:ERROR|FATAL):  out of memory",
        # postmaster.c: LogChildExit; 15 is an order to end, and so is 3.
        r"terminated by signal (?:4|6|7|8|9|11)\b",
        # postmaster.c: PostmasterStateMachine, process_pm_child_exit, BackendStartup.
        r"(?:aborting startup|shutting down) due to startup process failure",
        r"abnormal database system shutdown|could not fork .*: Cannot allocate memory",
        r"because data directory lock file is invalid",
    ),
    "mariadb": (
        # sql/signal_handler.cc: handle_fatal_signal; ut0dbg.cc: ut_dbg_assertion_failed.
        r"\[ERROR\] \S+ got signal \d+ ;|InnoDB: Assertion failure in file ",
        # sql/mysqld.cc: unireg_abort, network_init; mysys: my_malloc.
        r"\[ERROR\] Aborting$|\[ERROR\] Can't start server|\[ERROR\] .*Out of memory",
        # sql/handler.cc: ha_initialize_handlerton; storage/innobase: innodb_init.
        r"Plugin '\w+' registration as a STORAGE ENGINE failed",
        r"InnoDB: Plugin initialization aborted",
        # sql_acl.cc.
        r"Fatal error: Can't open and lock privilege tables",
    ),
    "nats": (
        # server/log.go: Fatalf. Its panics are Go's.
        r"^\[\d+\] \S+ \S+ \[FTL\] ",
        r"^nats-server: ",
    ),
    "the kernel": (r"[Oo]ut of memory: Killed process|segfault at ",),
}
BAD = re.compile("|".join(pattern for mine in _CRASHES.values() for pattern in mine))
"""A line by which a server crashes."""

BY_LOSS = re.compile(
    r"terminated by signal 9\b|Failed listening on port"
    r"|because data directory lock file is invalid"
    r"|\[ERROR\] (?:Aborting$|Can't start server: Bind on TCP/IP port)"
    r"|\[FTL\] Error listening on port"
)
"""Of these, lines that a fault explains by which the server lost a process or its data: the process
was killed, its successor finds its port taken or its files gone."""

FULL = re.compile(r"no space left on device", re.IGNORECASE)
"""The reason for a crash that a full disk explains."""
