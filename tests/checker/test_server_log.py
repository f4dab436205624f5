"""server-log accuses servers that break down by themselves, and no other."""

import pytest

from fencepost.checker.checker import Run
from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import History, Op
from fencepost.checker.server_log import gap, server_log
from fencepost.checker.verdict import Verdict

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
        return server_log(Run(History(list(history)), test, logs))

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


@pytest.mark.parametrize(
    ("family", "told", "valid"),
    [
        ("kill", {"forgets": True}, True),
        ("strange", {}, True),
        ("partition", {"forgets": False}, False),
    ],
)
def test_a_killed_process_counts_unless_a_fault_took_its_server_down(judged, family, told, valid):
    value = {"fault": "k", "targets": ["etcd-2"], **told}
    history = [Op(0, 5, "nemesis", "invoke", family, value)]
    assert judged("fine", KILLED, history=history).valid is valid
    assert judged(KILLED, "fine", history=history).valid is False


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
