"""Which code is mutated, how a mutant replaces its function, and how survivors are counted."""

import libcst
import pytest
from mutmut.core import MutmutProgrammaticFailException
from mutmut.mutation.file_mutation import create_mutations
from mutmut.mutation.mutators import mutation_operators

from tests.mutation import mutators, score, switch
from tests.mutation.score import Count, Survivor, counted, listed, row, survivor


@pytest.fixture
def installed(monkeypatch):
    before = list(mutation_operators)
    skips = mutators.MutationVisitor._skip_node_and_children
    mutators.install()
    yield
    mutation_operators[:] = before
    monkeypatch.setattr(mutators.MutationVisitor, "_skip_node_and_children", skips)


def mutated(source):
    """Return the texts that replace the mutated ones."""
    _, found, _, _ = create_mutations("some.py", source)
    module = libcst.Module([])
    return [module.code_for_node(one.mutated_node) for one in found]


def test_words_are_left_alone_and_a_name_is_mutated_once(installed):
    assert mutated("def f():\n    return 'a sentence'\n") == []
    assert mutated("def f():\n    return 'name'\n") == ["'XXnameXX'"]


def test_a_sentence_as_an_argument_is_neither_dropped_nor_replaced(installed):
    assert mutated("def f(n):\n    g(f'{n} left')\n") == []
    assert mutated("def f(n):\n    g('some words', n)\n") == [
        "g('some words', None)",
        "g('some words', )",
    ]
    assert mutated("def f(n):\n    g(f'{n + 1} of them', n)\n") == [
        "g(f'{n + 1} of them', None)", "g(f'{n + 1} of them', )", "n - 1", "2",
    ]  # fmt: skip
    assert mutated("def f(n):\n    return cast(int, n)\n") == []


def test_properties_are_mutated_and_other_decorated_functions_are_not(installed):
    source = "class A:\n    @{}\n    def f(self):\n        return 1\n"
    assert mutated(source.format("property")) == ["2"]
    assert mutated(source.format("cache")) == []


def double(n, by=2):
    return n * by


def triple(n, by=3):
    return n * by


class Doubled:
    @property
    def twice(self):
        return 2

    @property
    def thrice(self):
        return 3


def test_a_mutant_replaces_its_function_and_fails_on_request(monkeypatch):
    monkeypatch.setattr(switch, "_functions", [])
    monkeypatch.setenv("MUTANT_UNDER_TEST", "")
    held = {"_mutmut_orig": lambda n, by=2: n * by, "x_double__mutmut_1": triple}
    assert switch.remember(held)(double) is double
    twice = Doubled.__dict__["twice"].fget
    switch.remember(
        {"_mutmut_orig": None, "xǁDoubledǁtwice__mutmut_1": Doubled.__dict__["thrice"]}
    )(twice)
    switch.switch("another.x_double__mutmut_1")
    assert double(5) == 10
    switch.switch(f"{__name__}.x_double__mutmut_1")
    assert (double(5), Doubled().twice) == (15, 2)
    switch.switch(f"{__name__}.xǁDoubledǁtwice__mutmut_1")
    assert Doubled().twice == 3
    switch.switch("fail")
    with pytest.raises(MutmutProgrammaticFailException):
        double(5)


DIFF = """--- checker/facts/holds.py
+++ checker/facts/holds.py
@@ -1,3 +1,3 @@
 def f(a):
-    return a | {1}
+    return a & {1}
"""


def test_a_survivor_is_known_by_its_function_and_the_lines_that_it_changes():
    one = survivor("checker/facts/holds.py", "checker.facts.holds.x__f__mutmut_7", DIFF)
    assert one == Survivor("checker/facts/holds.py", "_f", "return a | {1}", "return a & {1}")
    method = survivor("checker/facts/holds.py", "checker.facts.holds.xǁHoldǁf__mutmut_1", DIFF)
    assert method.function == "Hold.f"


def test_a_row_of_the_list_is_the_survivor_that_it_was_made_from():
    one = Survivor("checker/facts/holds.py", "Hold.f", "return a | b", "return `a` | ")
    told = (
        f"## Why\n\n| file | function | before | after |\n| --- | --- | --- | --- |\n{row(one)}\n"
    )
    assert listed(told * 2) == [one, one]


def test_mutants_that_never_end_count_as_killed_and_are_listed():
    assert counted([0, 1, 36, None, 33]) == Count(2, 1, 4, 5)
    assert str(Count(2, 1, 4, 5)) == " 50.0 %     2 of 4     (1 by time, 1 not tried yet)"
    assert str(Count(3, 0, 3, 3)) == "100.0 %     3 of 3    "


def test_a_survivor_that_is_not_listed_and_a_low_score_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mutants/checker/facts").mkdir(parents=True)
    (tmp_path / "checker/facts").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "checker/facts/holds.py").touch()
    monkeypatch.setattr(score, "get_diff_for_mutant", lambda name, path: DIFF)

    def told(codes, text):
        names = {f"checker.facts.holds.x_f__mutmut_{n}": code for n, code in enumerate(codes)}
        meta = score.json.dumps({"exit_code_by_key": names})
        (tmp_path / "mutants/checker/facts/holds.py.meta").write_text(meta)
        (tmp_path / "docs/mutants.md").write_text(text)
        return score.main([]), capsys.readouterr().out

    one = row(Survivor("checker/facts/holds.py", "f", "return a | {1}", "return a & {1}"))
    code, out = told([1] * 18 + [0] * 2, one)
    assert (code, out.count("1 that survived are not in docs/mutants.md:")) == (1, 1)
    assert told([1] * 18 + [0] * 2, f"{one}\n{one}")[0] == 0
    assert told([1] * 17 + [0] * 2, f"{one}\n{one}")[0] == 1
    assert told([1] * 18 + [None], one)[0] == 1
    code, out = told([1] * 19 + [0], "")
    assert (code, one in out) == (1, True)
