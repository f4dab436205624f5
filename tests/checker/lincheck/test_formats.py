"""Each format is parsed by its origin's rules; errors name the line and the reason."""

from fractions import Fraction

import pytest

from fencepost.checker.lincheck import UNKNOWN, BadHistory
from fencepost.checker.lincheck.formats.files import detect, read
from fencepost.checker.lincheck.history import calls


def events(tmp_path, text, form=None, warn=pytest.fail):
    path = tmp_path / "history"
    path.write_text(text)
    return [event for _, event in read(path, form, warn)]


def complaint(tmp_path, text, form=None):
    path = tmp_path / "history"
    path.write_text(text)
    with pytest.raises(BadHistory) as caught:
        list(calls(read(path, form, pytest.fail)))
    return caught.value


INVOKE = '{"process": 0, "type": "invoke", "f": "read", "value": null}\n'
OK = '{"process": 0, "type": "ok", "f": "read", "value": 1}\n'


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (INVOKE, "jsonl"),
        ("\n" + INVOKE, "jsonl"),
        ("; a comment\n[{:process 0}]", "edn"),
        ("{:process 0, :type :invoke}", "edn"),
        ("#jepsen.history.Op{:index 0}", "edn"),
        ('{:process 0, :type :invoke, :f :get, :key "0"}', "porcupine-kv"),
        ("INFO  jepsen.util - 2\t:invoke\t:write\t1\n", "porcupine-etcd"),
    ],
)
def test_the_format_is_detected_from_the_content(text, form):
    assert detect(text) == form


def test_edn_may_be_one_collection_or_one_map_after_another(tmp_path):
    one = {"process": 1, "type": "invoke", "f": "write", "value": [0, "a", None]}
    text = '{:process 1, :type :invoke :f :write, :value [0 "a" nil]}'
    for form in (text, f"[{text}]", f"({text})", f"; why\n[{text} ; that\n]", f"#_ {{}} {text}"):
        assert events(tmp_path, form, "edn") == [one]
    assert events(tmp_path, f"{text}\n{text}", "edn") == [one, one]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3", -3),
        ("3N", 3),
        ("1.5M", 1.5),
        ("1e3", 1000.0),
        ("2/3", Fraction(2, 3)),
        ("true", True),
        (r'"a\"b\n\u0041"', 'a"b\nA'),
        (r"\newline", "\n"),
        (":k/w", "k/w"),
        ("sym", "sym"),
        ("#{1}", {1}),
        ("{:a (1 2)}", {"a": [1, 2]}),
        ('#inst "2020"', "2020"),
        ("[1 #_ 2 3]", [1, 3]),
        ("[1, #_ #_ 2 3 4]", [1, 4]),
        ("{[1] 2}", {(1,): 2}),
    ],
)
def test_edn_values(tmp_path, text, value):
    history = f"[{{:process 0, :type :invoke, :f :x, :value {text}}}]"
    assert events(tmp_path, history, "edn")[0]["value"] == value


def test_an_edn_read_of_nil_says_nothing_and_a_json_read_of_null_says_null(tmp_path):
    text = "[{:process 0, :type :ok, :f :read, :value nil}]"
    assert events(tmp_path, text)[0]["value"] is UNKNOWN
    assert events(tmp_path, INVOKE.replace("invoke", "ok"))[0]["value"] is None


def test_a_failed_cas_of_porcupines_etcd_log_was_applied_and_did_not_match(tmp_path):
    text = "INFO  jepsen.util - 2\t:fail\t:cas\t[0 1]\n"
    assert events(tmp_path, text) == [{"process": 2, "type": "ok", "f": "cas", "value": False}]


def test_a_torn_last_line_is_dropped_and_reported(tmp_path):
    for whole, torn in ((INVOKE, OK[:20]), ("{:process 0, :type :invoke, :f :read}\n", "{:proc")):
        said = []
        assert len(events(tmp_path, whole + torn, warn=said.append)) == 1
        assert "line 2" in said[0]
        assert "torn" in said[0]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (INVOKE + "nonsense\n" + OK, 2, "no JSON"),
        (INVOKE + OK.replace("1}", "NaN}"), 2, "no JSON: NaN is not a JSON number"),
        (INVOKE + OK.replace("1}", "1e999}"), 2, "no JSON: 1e999 is too large"),
        (INVOKE + OK[:20] + "\n", 2, "no JSON"),
        (INVOKE + "[1]\n", 2, "not a JSON object"),
        (INVOKE + INVOKE, 2, "still open"),
        (OK, 1, "never invoked"),
        (INVOKE + OK.replace("read", "write"), 2, "line 1 invoked read"),
        (INVOKE + '{"type": "ok", "f": "read"}\n', 2, "no process"),
        (INVOKE.replace("0", "1.5"), 1, "process must be"),
        (INVOKE.replace("0", "true"), 1, "process must be"),
        (INVOKE.replace('"read"', "7"), 1, "f must be"),
        (INVOKE + OK.replace('"ok"', '"done"'), 2, "type must be"),
        (INVOKE.replace("null", 'null, "time": 0.5'), 1, "integer of ns"),
        ("{:process 0\n:type", 1, "never closed"),
        ("[{:process 0]", 1, "closes"),
        ("[{:process}]", 1, "value for every key"),
        ("[{:process 0 :type :invoke :f :read}}]", 1, "closes"),
        ('[{:a "x}]', 1, "never closed"),
        ("[3]", 1, "not a map"),
        ("INFO jepsen.util - x :ok :read 1\n", 1, "not `INFO"),
        ("INFO jepsen.util - 1 :ok :read what\n", 1, "cannot read"),
        ("", None, "empty"),
        ("\n\n", None, "empty"),
        ("; only words\n[]", None, "no event"),
        ("hello\n", 1, "format"),
    ],
)
def test_lines_that_cannot_be_parsed_are_named_with_the_reason(tmp_path, text, line, reason):
    bad = complaint(tmp_path, text)
    assert bad.line == line
    assert reason in bad.reason
    assert bad.file in (None, str(tmp_path / "history"))


def test_a_folder_a_missing_file_and_binary_are_complaints_too(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "none", tmp_path / "binary"):
        with pytest.raises(BadHistory):
            list(read(path, "jsonl", pytest.fail))


def test_unknown_fields_and_nemesis_ops_do_no_harm(tmp_path):
    nemesis = '{"process": "nemesis", "type": "info", "f": "kill", "value": {"a": [1]}}\n'
    read_back = events(tmp_path, nemesis + INVOKE.replace("null", 'null, "node": "n1"') + OK)
    (call,) = calls(enumerate(read_back, 1))
    assert (call.f, call.type, call.result) == ("read", "ok", 1)


def test_lost_is_information_at_any_time():
    history = [
        {"process": 0, "type": "info", "f": "lost", "value": {"lock": "a", "hold": 1}},
        {"process": 0, "type": "invoke", "f": "release", "value": None},
        {"process": 0, "type": "info", "f": "lost", "value": {"lock": "a", "hold": 1}},
        {"process": 0, "type": "ok", "f": "release", "value": None},
    ]
    assert [call.f for call in calls(enumerate(history, 1))] == ["lost", "lost", "release"]
