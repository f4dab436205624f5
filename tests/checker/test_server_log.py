"""server-log accuses servers that break down by themselves, and no other."""

import pytest

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from fencepost.checker.server_log import gap, server_log
from fencepost.checker.verdict import Verdict
from fencepost.harness.servers.crash_lines import known

TEST = {"servers": ["etcd-1", "etcd-2"]}
CALM = {
    "etcd": '{"level":"info","caller":"embed/etcd.go:311","initial-corrupt-check":false}\n'
    '{"level":"warn","caller":"etcdserver/server.go:1151","msg":"leader is overloaded"}\n'
    '{"level":"error","caller":"embed/etcd.go:769","msg":"setting up serving failed"}\n'
    "2026/11/22 01:54:40 ERROR: Failed to decode request: http: invalid Read on closed Body",
    "redis": "46:M 22 Nov 2026 01:53:30.1 # WARNING Memory overcommit must be enabled!\n"
    "46:M 22 Nov 2026 01:53:31.0 # User requested shutdown...\n"
    "-OOM command not allowed when used memory > 'maxmemory'.",
    "zookeeper": 'SLF4J: Failed to load class "org.slf4j.impl.StaticLoggerBinder".\n'
    "2026-11-22 [myid:1] - WARN  [QuorumPeer[myid=1]] - Unexpected exception\n"
    "java.io.EOFException",
    "postgres": "2026-11-22 01:36:11 UTC [66] ERROR:  duplicate key value violates unique "
    'constraint "pg_class_relname_nsp_index"\n'
    "2026-11-22 01:36:12 UTC [70] FATAL:  the database system is starting up\n"
    "2026-11-22 01:36:12 UTC [71] FATAL:  terminating connection due to administrator command",
    "java": "Picked up JAVA_TOOL_OPTIONS: -XX:+ExitOnOutOfMemoryError -Xmx512m\n"
    "-XX:+HeapDumpOnOutOfMemoryError -XX:OnOutOfMemoryError=/bin/true\n"
    "2026-01-01 00:00:00,010 [myid:1] - INFO  [main:ServiceUtils@45] - Exiting JVM with code 0",
    "redis that loads a truncated file": "1:M 01 Jan 2026 00:00:00.000 # !!! Warning: short read "
    "while loading the AOF file !!!\n1:M 01 Jan 2026 00:00:00.000 # AOF loaded anyway because "
    "aof-load-truncated is enabled",
    "redis at its start, and as a replica whose master dies": "1:C 01 Jan 2026 00:00:00.000 # "
    "oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo\n"
    "1:M 01 Jan 2026 00:00:00.000 # WARNING Memory overcommit must be enabled! Without it, a "
    "background save or replication may fail under low memory condition.\n"
    "1:S 01 Jan 2026 00:00:00.000 # MASTER aborted replication with an error: NOMASTERLINK\n"
    "1:S 01 Jan 2026 00:00:00.000 # Short read or OOM loading DB. Unrecoverable error, aborting "
    "now.\n1:S 01 Jan 2026 00:00:00.000 # Failed trying to load the MASTER synchronization DB "
    "from disk, check server logs.\n"
    "1:M 01 Jan 2026 00:00:00.000 # Background saving terminated by signal 10\n"
    "1:M 01 Jan 2026 00:00:00.000 # Warning: Could not create server TCP listening socket ::1:6379",
    "zookeeper whose follower is cut off, and that is asked to end": "2026-01-01 00:00:00,000 "
    "[myid:1] - ERROR [LearnerHandler-/10.0.0.2:1:o.a.z.s.q.LearnerHandler@714] - Unexpected "
    "exception causing shutdown while sock still open\n"
    "2026-01-01 00:00:00,000 [myid:1] - INFO  [main:SyncRequestProcessor@224] - "
    "SyncRequestProcessor exited!\n"
    "2026-01-01 00:00:00,000 [myid:1] - WARN  [main:QuorumPeer@1] - QuorumPeer main thread exited\n"
    "2026-01-01 00:00:00,000 [myid:1] - INFO  [main:ZooKeeperServerListenerImpl@42] - Thread main "
    "exits, error code 0\n2026-01-01 00:00:00,000 [myid:1] - INFO [main] - Exiting normally",
    "options of the JVM": "-XX:AbortVMOnException=java.lang.OutOfMemoryError\n"
    "-XX:+CrashOnOutOfMemoryError -XX:ErrorFile=/var/log/hs_err_pid%p.log\n"
    "Server environment:java.opts=-XX:OnOutOfMemoryError=kill",
    "etcd that is asked to end": '{"level":"info","msg":"received signal; shutting down","signal":'
    '"terminated"}\n{"level":"warn","msg":"lost TCP streaming connection","error":"unexpected '
    'EOF"}\n{"level":"info","msg":"skipped leadership transfer; fatal errors would be logged"}\n'
    "2026-11-22 01:54:35.123456 W | etcdserver: read-only range request took too long\n"
    "2026-01-01T00:00:00.000Z\tinfo\tembed/etcd.go:1\tpanic-handler is set",
    "postgres that quotes its clients": "2026-11-28 03:59:23 UTC [9] LOG:  statement: select "
    "'PANIC:  x'\n\t, 'PANIC:  y', 'z was terminated by signal 9: Killed'\n"
    '2026-11-28 03:59:23 UTC [9] ERROR:  invalid input syntax for type integer: "PANIC:  x"\n'
    "2026-11-28 03:59:23 UTC [9] STATEMENT:  select 'FATAL:  out of memory'::int\n"
    "2026-11-28 03:59:24 UTC [1] DETAIL:  Failed process was running: select 'PANIC:  x was "
    "terminated by signal 11'\n2026-11-28 03:59:24 UTC [9] LOG:  duration: 9 ms  statement: "
    "select 'abnormal database system shutdown'",
    "postgres that is started twice": "2026-11-28 03:59:27 UTC [5] FATAL:  lock file "
    '"postmaster.pid" already exists',
    "postgres after a crash of its machine": "2026-11-22 01:36:11 UTC [1] LOG:  database system "
    "was not properly shut down; automatic recovery in progress\n"
    "2026-11-22 01:36:11 UTC [7] LOG:  invalid record length at 0/1: wanted 24, got 0\n"
    "2026-11-22 01:36:11 UTC [1] LOG:  server process (PID 70) was terminated by signal 15: "
    "Terminated\n2026-11-22 01:36:11 UTC [1] LOG:  received immediate shutdown request\n"
    "2026-11-22 01:36:11 UTC [8] WARNING:  terminating connection because of crash of another "
    "server process",
    "mariadb after a crash of its machine": "2026-11-28  2:47:16 0 [Note] InnoDB: Starting crash "
    "recovery from checkpoint LSN=44910\n2026-11-28  2:47:16 3 [Warning] Access denied for user "
    "'x'@'10.0.0.1' (using password: NO)\n2026-11-28  2:47:18 9 [Warning] Aborted connection 9 to "
    "db: 'fencepost' user: 'fencepost' host: '10.0.0.1' (Got timeout reading communication packets)"
    "\n2026-11-28  2:47:18 0 [ERROR] mariadbd: Disk is full writing './x.MAI'",
    "nats whose leader is gone": "[542] 2026/11/28 02:49:22.237501 [WRN] JetStream cluster no "
    "metadata leader\n[542] 2026/11/28 02:49:22.237501 [ERR] Error trying to connect to route "
    "(attempt 1): lookup for host: no such host",
}
BAD = [
    "panic: tocommit(7) is out of range [lastIndex(5)]. Was the raft log corrupted?",
    "fatal error: runtime: out of memory",
    '{"level":"fatal","ts":"2026-11-22T01:54:35Z","caller":"wal/wal.go:1","msg":"crc mismatch"}',
    '{"level":"panic","ts":"2026-11-22T01:54:35Z","msg":"failed to open WAL"}',
    "46:M 22 Nov 2026 01:53:31.0 # Out Of Memory allocating 1048576 bytes!",
    "=== REDIS BUG REPORT START: Cut & paste starting from here ===",
    'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
    "# A fatal error has been detected by the Java Runtime Environment:",
    "2026-11-22 [myid:1] - ERROR [SyncThread:1] - Severe unrecoverable error, exiting",
    "2026-11-22 01:36:13 UTC [46] PANIC:  could not locate a valid checkpoint record",
    "2026-11-22 01:36:13 UTC [46] ERROR:  out of memory",
    "2026-11-22 01:36:13 UTC [46] LOG:  server process (PID 70) was terminated by signal 11: "
    "Segmentation fault",
    "Out of memory: Killed process 4711 (etcd)",
    "2026-11-22 01:36:13 UTC [46] LOG:  server process (PID 70) was terminated by signal 9: Killed",
    "2026-11-22 01:36:13 UTC [1] LOG:  aborting startup due to startup process failure",
    "2026-01-01 00:00:00,000 [myid:1] - ERROR [main:QuorumPeerMain@114] - Unexpected exception, "
    "exiting abnormally",
    "2026-01-01 00:00:00,010 [myid:1] - ERROR [main:ServiceUtils@42] - Exiting JVM with code 12",
    "1:M 01 Jan 2026 00:00:00.000 # Bad file format reading the append only file a.aof: make a "
    "backup of your AOF file",
    "1:M 01 Jan 2026 00:00:00.001 # Fatal error loading the DB, check server logs. Exiting.",
    "Terminating due to java.lang.OutOfMemoryError: Java heap space",
    "2026-11-22 01:54:35.123456 C | etcdserver: walpb: crc mismatch",
    "2026-01-01T00:00:00.000Z\tfatal\twal/wal.go:1\tcrc mismatch",
    '{"level": "panic", "msg": "failed to open WAL"}',
    "unexpected fault address 0x7f3c",
    "SIGSEGV: segmentation violation",
    "1:M 01 Jan 2026 00:00:00.000 # Redis 7.0.15 crashed by signal: 11, si_code: 1",
    "1:M 01 Jan 2026 00:00:00.000 # Redis aborting for OUT OF MEMORY. Allocating 4096 bytes!",
    "zmalloc: Out of memory trying to allocate 4096 bytes",
    "1:M 01 Jan 2026 00:00:00.000 # Terminating server after rdb file reading failure.",
    "1:M 01 Jan 2026 00:00:00.000 # Wrong RDB checksum expected: (1) but got (2). Aborting now.",
    "1:M 01 Jan 2026 00:00:00.000 # Unexpected end of file reading the append only file a.aof. You "
    "can: 1) Make a backup",
    "*** FATAL AOF MANIFEST FILE ERROR ***",
    "1:M 01 Jan 2026 00:00:00.000 # Fatal error: can't open the append log file a.aof for reading: "
    "Permission denied",
    "1:M 01 Jan 2026 00:00:00.000 # Can't open the append-only file a.aof: Permission denied",
    "1:M 01 Jan 2026 00:00:00.000 # Can't open or create append-only dir d: Read-only file system",
    "1:M 01 Jan 2026 00:00:00.000 # Error reading the RDB base file b.rdb, AOF loading aborted",
    "1:M 01 Jan 2026 00:00:00.000 # Can't recover from AOF write error when the AOF fsync policy "
    "is 'always'. Exiting...",
    "1:M 01 Jan 2026 00:00:00.000 # Can't persist AOF for fsync error when the AOF fsync policy is "
    "'always': Input/output error. Exiting...",
    "1:S 01 Jan 2026 00:00:00.000 # FATAL: this replica instance finished the synchronization with "
    "its master, but the AOF can't be turned on. Exiting now.",
    "1:M 01 Jan 2026 00:00:00.000 # FATAL: Data file was created with a Redis server configured to "
    "handle more than 16 databases. Exiting",
    "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***",
    "1:M 01 Jan 2026 00:00:00.000 # Critical error while loading ACLs. Exiting.",
    "1:M 01 Jan 2026 00:00:00.000 # Can't load module from m.so: server aborting",
    "1:M 01 Jan 2026 00:00:00.000 # Failed listening on port 6379 (TCP), aborting.",
    "1:M 01 Jan 2026 00:00:00.000 # Fatal: Can't initialize Background Jobs.",
    "1:M 01 Jan 2026 00:00:00.000 # Unrecoverable error creating TCP socket accept handler.",
    "1:X 01 Jan 2026 00:00:00.000 # Sentinel config file s.conf is not writable: Permission "
    "denied. Exiting...",
    "2026-01-01 00:00:00,000 [myid:1] - ERROR [main:QuorumPeerMain@96] - Unable to access datadir, "
    "exiting abnormally",
    "Invalid config, exiting abnormally",
    "2026-01-01 00:00:00,000 [myid:1] - ERROR [main] - Fatal error, JVM should exit with code 1. "
    "Actually System.exit is disabled",
    "2026-01-01 00:00:00,000 [myid:1] - INFO  [main] - Thread NIOServerCxnFactory.AcceptThread:0 "
    "exits, error code 1",
    "2026-01-01 00:00:00 [myid:1] - ERROR [main:QuorumPeer@1] - Unable to load database on disk",
    "# There is insufficient memory for the Java Runtime Environment to continue.",
    "Error occurred during initialization of VM",
    "Caused by: java.lang.OutOfMemoryError: unable to create native thread",
    "2026-11-22 01:36:13 UTC [9] FATAL:  out of memory",
    "2026-11-22 01:36:13 UTC [1] LOG:  shutting down due to startup process failure",
    "2026-11-22 01:36:13 UTC [1] LOG:  abnormal database system shutdown",
    "2026-11-22 01:36:13 UTC [1] LOG:  could not fork new process for connection: Cannot allocate "
    "memory",
    "2026-11-22 01:36:13 UTC [1] LOG:  performing immediate shutdown because data directory lock "
    "file is invalid",
    "261128  2:47:57 [ERROR] /usr/sbin/mariadbd got signal 11 ;",
    "2026-11-28 02:47:57 0x7f InnoDB: Assertion failure in file ./storage/innobase/log.cc line 5",
    "2026-11-28  2:47:57 0 [ERROR] Plugin 'InnoDB' registration as a STORAGE ENGINE failed.",
    "2026-11-28  2:47:57 0 [ERROR] Aborting",
    "2026-11-28  2:47:57 0 [ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: in use",
    "2026-11-28  2:47:57 0 [ERROR] Fatal error: Can't open and lock privilege tables: none",
    "2026-11-28  2:47:57 0 [ERROR] mariadbd: Out of memory (Needed 4096 bytes)",
    "[542] 2026/11/28 02:49:22.237501 [FTL] Can't start JetStream: could not create storage",
    '[542] 2026/11/28 02:49:22.237501 [FTL] Error listening on port: 0.0.0.0:4222, "in use"',
    "nats-server: nats.conf:3:1: unknown field",
    "2026-11-28 04:00:08 UTC [6] FATAL:  could not map anonymous shared memory: Cannot allocate "
    "memory",
    '2026-11-28 03:59:19 UTC [5] FATAL:  lock file "postmaster.pid" is empty',
    '2026-11-28 03:59:24 UTC [1] LOG:  background worker "a: b" (PID 3) was terminated by signal '
    "11: Segmentation fault",
    "Memory cgroup out of memory: Killed process 4711 (redis-server)",
    "redis-server[4711]: segfault at 0 ip 00007f sp 00007f error 4",
]
FULL = (
    '{"level":"fatal","msg":"failed to save Raft entries","error":"write 0.tmp: no space left on '
    'device"}'
)


@pytest.fixture
def judged(tmp_path):
    def of(*texts, history=(), test=TEST):
        logs = {}
        for number, text in enumerate(texts, 1):
            if text is not None:
                logs[f"etcd-{number}"] = tmp_path / f"{number}.log"
                logs[f"etcd-{number}"].write_text(text)
        return server_log(Run(History(list(history)), test, logs, known()))

    return of


@pytest.mark.parametrize("kind", CALM)
def test_log_lines_of_a_start_and_a_kill_accuse_no_server(judged, kind):
    found = judged(CALM[kind], CALM[kind])
    assert found == Verdict(
        True,
        "No panic, fatal error or out-of-memory exit in 2 logs.",
        [],
        {"logs": 2, "after_faults": []},
    )


@pytest.mark.parametrize("line", BAD)
def test_a_server_that_breaks_down_is_accused_with_its_line(judged, line):
    found = judged("all is well", f"one\ntwo\n{line}\nfour")
    assert found.valid is False
    assert [(row["server"], row["line"]) for row in found.evidence] == [("etcd-2", 3)]
    assert found.evidence[0]["what"].startswith(f"etcd-2, line 3: {line[:50]}")
    assert found.summary.startswith("1 line of the servers' logs reports a crash: etcd-2, line")
    assert found.details == {"logs": 2, "after_faults": []}


@pytest.mark.parametrize(
    ("texts", "who"),
    [((None, None), "etcd-1, etcd-2"), (("fine", None), "etcd-2"), (("", "fine"), "etcd-1")],
)
def test_it_is_unknown_where_a_log_is_missing(judged, texts, who):
    found = judged(*texts)
    details = {"logs": 2 - len(who.split()), "after_faults": []}
    assert found == Verdict("unknown", f"No log of {who}.", [], details)


def test_a_log_that_is_no_text_is_searched_all_the_same(tmp_path):
    log = tmp_path / "etcd-1.log"
    log.write_bytes(b"\xff\xfe\n" + BAD[0].encode())
    found = server_log(Run(History([]), {"servers": ["etcd-1"]}, {"etcd-1": log}))
    assert [row["line"] for row in found.evidence] == [2]


def test_without_any_kind_of_server_the_lines_of_runtimes_and_of_the_kernel_count(tmp_path):
    log = tmp_path / "etcd-1.log"
    found = []
    for line in BAD:
        log.write_text(line)
        verdict = server_log(Run(History([]), {"servers": ["etcd-1"]}, {"etcd-1": log}))
        found += [line] if verdict.valid is False else []
    assert [line.split()[0] for line in found] == [
        "panic:", "fatal", "Exception", "#", "Out", "Terminating", "unexpected", "SIGSEGV:", "#",
        "Error", "Caused", "Memory", "redis-server[4711]:",
    ]  # fmt: skip


def test_it_is_unknown_where_there_are_no_servers(judged):
    assert judged(test={}).summary == "No log of any server."


def test_a_bad_line_counts_though_another_servers_log_is_missing(judged):
    assert judged(None, BAD[0]).valid is False


def struck(server):
    return [Op(0, 5, "nemesis", "invoke", "disk", {"fault": "d", "targets": [server]})]


def test_a_server_whose_disk_a_fault_filled_is_named_and_not_accused(judged):
    found = judged("fine", FULL, history=struck("etcd-2"))
    assert found.valid is True
    assert found.details["after_faults"] == [f"etcd-2, line 1: {FULL}"]
    assert found.summary.startswith("No panic, fatal error or out-of-memory exit in 2 logs. ")
    assert "Explained by a fault of the run: etcd-2, line 1" in found.summary


KILLED = "2026-11-22 01:36:13 UTC [46] LOG:  process (PID 7) was terminated by signal 9: Killed"
TAKEN = "1:M 01 Jan 2026 00:00:00.000 # Failed listening on port 6379 (TCP), aborting."
GONE = (
    "2026-11-22 01:36:13 UTC [1] LOG:  performing immediate shutdown because data directory lock "
    "file is invalid"
)


@pytest.mark.parametrize("line", [KILLED, TAKEN, GONE])
@pytest.mark.parametrize(
    ("family", "told", "valid"),
    [
        ("kill", {"forgets": True}, True),
        ("strange", {}, True),
        ("partition", {"forgets": False}, False),
    ],
)
def test_a_killed_process_and_a_failed_restart_count_unless_a_fault_took_the_server_down(
    judged, line, family, told, valid
):
    value = {"fault": "k", "targets": ["etcd-2"], **told}
    history = [Op(0, 5, "nemesis", "invoke", family, value)]
    assert judged("fine", line, history=history).valid is valid
    assert judged(line, "fine", history=history).valid is False


def test_a_server_that_cannot_load_its_data_counts_whatever_fault_took_it_down(judged):
    value = {"fault": "k", "targets": ["etcd-2"], "forgets": True}
    history = [Op(0, 5, "nemesis", "invoke", "kill", value)]
    losses = (
        "signal 9", "Failed listening", "lock file is inv", "is empty", "Bind on", "Error listening"
    )  # fmt: skip
    for line in BAD:
        excused = line.endswith("Aborting") or any(part in line for part in losses)
        assert judged("fine", line, history=history).valid is excused


def test_the_reason_may_be_some_lines_above(judged):
    reason = "1:M 01 Jan 2026 # Error writing to the AOF file: No space left on device"
    line = (
        "1:M 01 Jan 2026 # Can't recover from AOF write error when the AOF fsync policy is 'always'"
    )
    assert judged("fine", f"{reason}\n{line}", history=struck("etcd-2")).valid is True
    far = "\n".join([reason, *["..."] * 5, line])
    assert judged("fine", far, history=struck("etcd-2")).valid is False


def test_a_full_disk_that_no_fault_filled_counts(judged):
    assert judged("fine", FULL).valid is False
    assert judged("fine", FULL, history=struck("etcd-1")).valid is False


def test_a_panic_for_another_reason_counts_even_during_a_fault(judged):
    assert judged("fine", BAD[0], history=struck("etcd-2")).valid is False


@pytest.mark.parametrize(("between", "valid"), [(4, True), (5, False)])
def test_the_reason_may_be_some_lines_below(judged, between, valid):
    reason = "java.io.IOException: No space left on device"
    text = "\n".join([BAD[8], *["\tat java.base"] * between, reason])
    assert judged("fine", text, history=struck("etcd-2")).valid is valid


def test_a_long_line_is_cut_where_it_is_shown(judged):
    found = judged("fine", f"panic: {'x' * 1000}")
    assert found.evidence[0]["what"] == f"etcd-2, line 1: panic: {'x' * 193}"


def test_a_history_without_logs_and_a_run_in_progress_are_not_judged():
    checker = CHECKERS["server-log"]
    assert (checker.touches(History([])), checker.at_the_end) == (False, True)
    assert (checker.name, checker.about, checker.control) == ("server-log", ("service",), True)


def test_a_log_whose_middle_was_searched_before_truncation_is_judged_by_the_rest(judged):
    found = judged("fine", f"one\n{gap(5000, searched=True)}two")
    assert found.valid is True
    assert found.summary == (
        "No panic, fatal error or out-of-memory exit in 2 logs. Left out, once it had been "
        "searched: the middle of etcd-2 (5000 bytes)."
    )
    assert found.details["left_out"] == ["etcd-2 (5000 bytes)"]


def test_a_breakdown_that_was_kept_of_the_middle_counts(judged):
    found = judged("fine", f"one\n{gap(5000, searched=True)}{BAD[0]}\ntwo")
    assert [(row["server"], row["line"]) for row in found.evidence] == [("etcd-2", 3)]
    assert found.details["left_out"] == ["etcd-2 (5000 bytes)"]


@pytest.mark.parametrize("line", ["... 5000 bytes were left out here ...", gap(5000, False)])
def test_the_unsearched_part_of_a_log_may_have_contained_anything(judged, line):
    found = judged(f"one\n{line}\ntwo", "fine")
    assert found.valid == "unknown"
    assert found.summary == (
        "The middle of these logs is missing, and was not searched: etcd-1 (5000 bytes)."
    )
    assert found.evidence == []
    assert found.details["left_out"] == ["etcd-1 (5000 bytes)"]
    assert judged(f"{BAD[0]}\n{line}\n", "fine").valid is False
