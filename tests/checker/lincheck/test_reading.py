"""Readers of histories, line by line: values, comments, and text that cannot be parsed."""

from decimal import Decimal
from fractions import Fraction

import pytest

from fencepost.checker.lincheck import UNKNOWN, BadHistory
from fencepost.checker.lincheck.formats import edn, jsonl, porcupine
from fencepost.checker.lincheck.formats.files import detect, read
from fencepost.checker.lincheck.model import MAP, Name, Truth, frozen


def given(reader, text, warn=pytest.fail):
    return list(reader(text.splitlines(keepends=True), warn))


def refused(reader, text):
    with pytest.raises(BadHistory) as caught:
        given(reader, text)
    return caught.value.line, caught.value.reason


def value(text):
    [(_, event)] = given(edn.events, f"{{:v {text}}}")
    return event["v"]


def char(char):
    return Name(char, f"\\{char}")


def name(text, name):
    return Name(name, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+7", 7),
        ("-0", 0),
        ("12N", 12),
        ("1.5", 1.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("-1.5E-2M", Decimal("-0.015")),
        ("3M", Decimal(3)),
        ("2/3", Fraction(2, 3)),
        ("1e999", Decimal("1e999")),
        ("12345678901234567890.1", Decimal("12345678901234567890.1")),
        ("0.10", 0.1),
        ("nil", None),
        ("true", True),
        ("false", False),
        (":a", name(":a", "a")),
        ("::a", name("::a", ":a")),
        ("a.b/c-d?", name("a.b/c-d?", "a.b/c-d?")),
        ('""', ""),
        (r'"\t\r\n\\\"\b\f"', '\t\r\n\\"\b\f'),
        (r'"\u0041b"', "Ab"),
        (r"\a", char("a")),
        (r"\space", char(" ")),
        (r"\tab", char("\t")),
        (r"\return", char("\r")),
        (r"\formfeed", char("\f")),
        (r"\backspace", char("\b")),
        (r"\u0041", char("A")),
        (r"\u", char("u")),
        ("[]", []),
        ("(1 [2])", [1, [2]]),
        ("#{}", frozenset()),
        ("{true 1, nil 2}", {Truth.TRUE: 1, None: 2}),
        ("#{1 true}", frozenset({1, Truth.TRUE})),
        (r"\u1234", char("\u1234")),
        (r'"\u1234"', "\u1234"),
        ("#{1 [2 3]}", frozenset({1, (2, 3)})),
        ("{}", {}),
        ("{[1 2] 3}", {(1, 2): 3}),
        ("{{:a 1} 2}", {(MAP, frozenset({(frozen(name(":a", "a")), 1)})): 2}),
        ("#a/b [1]", [1]),
        ("#a #b 1", 1),
        ("[#_1]", []),
        ("[#_#_1 2 3]", [3]),
        ("[#_ #a 1 2]", [2]),
        ("[1 ; no 2\n 3]", [1, 3]),
        ("[1,,2]", [1, 2]),
        ("1x", name("1x", "1x")),
    ],
)
def test_edn_is_read_as_the_values_that_it_writes(text, expected):
    found = value(text)
    assert (found, type(found)) == (expected, type(expected))


def test_a_map_has_the_line_on_which_it_begins():
    found = given(edn.events, "; why\n\n{:a 1\n :b 2}\n{:a\n 3}\n")
    assert found == [(3, {"a": 1, "b": 2}), (5, {"a": 3})]
    for opening, closing in ("[]", "()"):
        text = f"{opening}\n{{:a 1}}\n{{:a {{:b [{{:c 1}}]}}}}{closing}\n"
        assert given(edn.events, text) == [(2, {"a": 1}), (3, {"a": {"b": [{"c": 1}]}})]
    assert given(edn.events, "[{:a 1}] {:a 2}") == [(1, {"a": 1}), (1, {"a": 2})]
    assert given(edn.events, "#_ [{:a 1}] {:a 2} [{:a 3}]") == [(1, {"a": 2}), (1, {"a": 3})]
    assert given(edn.events, "#_ #_ 1 ({:a 1}) {:a [{:b 2}]}") == [(1, {"a": [{"b": 2}]})]
    assert given(edn.events, "[] {:a #{1}}") == [(1, {"a": frozenset({1})})]


def test_only_an_ok_read_of_nil_says_nothing():
    def said(kind, f, found):
        [(_, event)] = given(edn.events, f"{{:type :{kind} :f :{f} :value {found}}}")
        return event["value"]

    assert said("ok", "read", "nil") is UNKNOWN
    assert said("ok", "write", "nil") is None
    assert said("invoke", "read", "nil") is None
    assert said("ok", "read", "3") == 3
    [(_, event)] = given(edn.events, "{:type :ok :f :read :time 7}")
    assert event == {"type": "ok", "f": "read", "value": UNKNOWN, "time": 7}


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("{:a 1}\n3\n", 2, "not a map: 3"),
        ("\n[3]", 2, "not a map: 3"),
        ("{:a 1}\n\n]", 3, "] closes nothing"),
        ("{:a\n[1)}", 2, ") closes the [ of line 2"),
        ("{:a #{1)}", 1, ") closes the #{ of line 1"),
        ("\n{:a\n1 :b}", 2, "a map needs a value for every key"),
        ("\n{:a [#_]}", 2, "nothing follows #_"),
        ("{:a 1}\n#foo", 2, "nothing follows #foo"),
        ("{:a 1}\n#_\n", 3, "nothing follows #_"),
        ('\n[{:a "x\n}]', 2, "the string of line 2 is never closed"),
        ('{:a 1}\n"x', None, "the string of line 2 is never closed"),
        ("\n\n[{:a 1}", 3, "the [ of line 3 is never closed"),
        ("#{1", 1, "the #{ of line 1 is never closed"),
        ('\n{:a "\\q"}', 2, "unknown escape \\q in a string"),
        ("{:a\n @x}", 2, "cannot read '@x}'"),
        ("@" + "x" * 30, 1, "cannot read '@" + "x" * 19 + "'"),
        (r'{:a "\u12"}', 1, "unknown escape \\u in a string"),
        ("{:a 1}\n{:a\n", 2, "the { of line 2 is never closed"),
        ("{:a\n{:b", 1, "the { of line 1 is never closed"),
        ("{:a 1}\n[{:a", 2, "the [ of line 2 is never closed"),
    ],
)
def test_broken_edn_is_refused_with_its_line(text, line, reason):
    assert refused(edn.events, text) == (line, reason)


@pytest.mark.parametrize("torn", ["{:a", '{:a "x', "{#_ 1", "{:a [1 {:b"])
def test_a_map_cut_off_in_the_last_line_is_dropped(torn):
    said = []
    assert given(edn.events, "\n{:a 1}\n" + torn, said.append) == [(2, {"a": 1})]
    assert said == ["line 3 is torn (the map does not end) and was dropped"]


def test_json_has_an_object_a_line():
    assert given(jsonl.events, '\n{"a": 1}\n  \n {"b": [2]} \n{"c": 3}') == [
        (2, {"a": 1}),
        (4, {"b": [2]}),
        (5, {"c": 3}),
    ]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("{}\n[1]\n", 2, "not a JSON object: '[1]'"),
        (f'"{"x" * 70}"\n', 1, "not a JSON object: '\"" + "x" * 59 + "'"),
        ("\n3\n", 2, "not a JSON object: '3'"),
        ('{}\n{"a": 1} {"b": 2}\n', 2, "no JSON: Extra data: line 1 column 10 (char 9)"),
        ("{}\n{x\n", 2, "no JSON: Expecting property name enclosed in double quotes"),
    ],
)
def test_a_line_that_is_no_json_object_is_refused(text, line, reason):
    found, why = refused(jsonl.events, text)
    assert found == line
    assert why.startswith(reason)


def test_half_a_line_at_the_end_is_dropped():
    said = []
    assert given(jsonl.events, '{"a": 1}\n{"b"', said.append) == [(1, {"a": 1})]
    assert said == ["line 2 is torn (no newline, no JSON) and was dropped"]


def test_an_etcd_log_has_an_event_a_line():
    text = (
        "INFO  jepsen.util - 12\t:invoke\t:cas\t[0 -1]\n\n"
        "INFO jepsen.util - 12 :fail :cas [0 -1]\n"
        "INFO jepsen.util - 3 :invoke :read nil\n"
        "INFO jepsen.util - 3 :fail :read :timed-out\n"
        "INFO jepsen.util - 4 :ok :write 7"
    )
    assert given(porcupine.etcd_events, text) == [
        (1, {"process": 12, "type": "invoke", "f": "cas", "value": [0, -1]}),
        (3, {"process": 12, "type": "ok", "f": "cas", "value": False}),
        (4, {"process": 3, "type": "invoke", "f": "read", "value": None}),
        (5, {"process": 3, "type": "fail", "f": "read", "value": None}),
        (6, {"process": 4, "type": "ok", "f": "write", "value": 7}),
    ]


def test_an_etcd_log_with_anything_else_in_it_is_refused_but_for_a_torn_end():
    line = "INFO jepsen.util - 4 :ok :write 7\n"
    assert refused(porcupine.etcd_events, line + "what\n" + line) == (
        2,
        "not `INFO jepsen.util - PROCESS :TYPE :F VALUE`: 'what'",
    )
    assert refused(porcupine.etcd_events, line + line.replace("7", "x y")) == (
        2,
        "cannot read the value 'x y'",
    )
    long = "x" * 70
    assert refused(porcupine.etcd_events, long + "\n")[1].endswith(f": {long[:60]!r}")
    assert refused(porcupine.etcd_events, line.replace("7", long))[1].endswith(f" {long[:40]!r}")
    said = []
    assert len(given(porcupine.etcd_events, line + "INFO jep", said.append)) == 1
    assert said == ["line 2 is torn and was dropped"]


def test_a_kv_log_names_its_key_in_each_map():
    text = '{:process 1 :f :put :key "a" :value "x"}\n{:process 2 :f :get :key "b"}\n'
    assert given(porcupine.kv_events, text) == [
        (1, {"process": 1, "f": "put", "key": "a", "value": ["a", "x"]}),
        (2, {"process": 2, "f": "get", "key": "b", "value": ["b", None]}),
    ]
    nemesis = "{:process :nemesis :f :start}"
    assert given(porcupine.kv_events, nemesis) == [(1, {"process": "nemesis", "f": "start"})]
    assert refused(porcupine.kv_events, "\n{:process 1 :f :get}") == (2, "the op has no :key")
    said = []
    assert given(porcupine.kv_events, text + "{:pro", said.append) == given(
        porcupine.kv_events, text
    )
    assert said == ["line 3 is torn (the map does not end) and was dropped"]


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ("INFO jepsen", "porcupine-etcd"),
        (",, ;{\n\n ;x\nINFO", "porcupine-etcd"),
        ('{\n "a"', "jsonl"),
        ('{:a "b"}', "edn"),
        ("[]", "edn"),
        ("(", "edn"),
        ("#{}", "edn"),
        ("{}", "edn"),
        ("[{:a 1 :key 1}]", "porcupine-kv"),
        ('{:key"x"}', "porcupine-kv"),
        ("( #a.b {:key 1}", "porcupine-kv"),
        ("{:keys 1}", "edn"),
        ("{:a 1}\n{:key 1}", "edn"),
    ],
)
def test_a_format_is_detected_from_the_first_characters(head, form):
    assert detect(head) == form


def test_a_text_that_begins_like_no_format_is_refused():
    for head in ("X", "\\", "}"):
        with pytest.raises(BadHistory, match="tell the format"):
            detect(head)
    for head in ("", " \n;x\n,"):
        with pytest.raises(BadHistory, match=r"^history: the file is empty$"):
            detect(head)
    with pytest.raises(BadHistory) as caught:
        detect("hello world" * 9)
    text = ("hello world" * 9)[:40]
    assert caught.value.args == (f"cannot tell the format of {text!r}; give --format", 1, None)


def test_the_format_that_is_given_is_taken(tmp_path):
    path = tmp_path / "history"
    path.write_text('{:key 1}\n{:key "é"}\n', encoding="utf-8")
    assert list(read(path, "edn", pytest.fail)) == [(1, {"key": 1}), (2, {"key": "é"})]
    assert list(read(str(path), None, pytest.fail))[1] == (2, {"key": "é", "value": ["é", None]})


def test_a_format_is_detected_from_a_long_prefix_and_the_file_is_read_from_its_start(tmp_path):
    path = tmp_path / "history"
    path.write_text("\n" * 65_000 + '{"a": 1}\n')
    assert list(read(path, None, pytest.fail)) == [(65_001, {"a": 1})]
    path.write_text("\n" * 70_000 + '{"a": 1}\n')
    with pytest.raises(BadHistory, match="the file is empty"):
        list(read(path, None, pytest.fail))


def test_an_error_in_a_file_is_reported_with_its_name(tmp_path):
    path = tmp_path / "history"
    for content, said in [
        (b"", f"{path}: the file is empty"),
        (b";\n[]", f"{path}: the file has no events"),
        (b"{}\n[1]\n", f"{path}:2: not a JSON object: '[1]'"),
        (b'{"a": "\xff"}', f"{path}: not UTF-8 text: invalid start byte"),
    ]:
        path.write_bytes(content)
        with pytest.raises(BadHistory) as caught:
            list(read(path, "jsonl" if content[:2] == b"{}" else None, pytest.fail))
        assert str(caught.value) == said
    with pytest.raises(BadHistory) as caught:
        list(read(tmp_path / "none", "edn", pytest.fail))
    assert str(caught.value) == f"{tmp_path / 'none'}: cannot be read: No such file or directory"


def test_a_torn_line_is_reported_to_the_caller(tmp_path):
    (tmp_path / "history").write_text('{"a": 1}\n{"b')
    said = []
    assert list(read(tmp_path / "history", None, said.append)) == [(1, {"a": 1})]
    assert said == ["line 2 is torn (no newline, no JSON) and was dropped"]
