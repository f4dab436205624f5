"""Test tools/prose.py: each construction, what counts as prose, and the budgets."""

from __future__ import annotations

import json
import subprocess

import pytest

from tools import prose

# Each construction: a sentence that uses it, and a normal sentence next to it.
EXAMPLES = {
    "what came of": ("It prints what came of each run.", "It prints the result of each run."),
    "came of": ("The fault came about in two runs.", "The client came back in two runs."),
    "comes of": ("Nothing comes of it on Redis.", "The reply comes from the leader."),
    "is over": ("It asks until the lease is over.", "The answer is over 5 s late."),
    "told": ("The client is told the end.", "The server reports the end."),
    "once more": ("The step is taken once more.", "The step is taken only once."),
    "anew": ("A container is started anew.", "A new container is started."),
    "beside": ("Write the page beside the file.", "Write the page next to the file."),
    "who as a subject without a noun": (
        "It names who holds the lock.", "A person who has never met the project can read it.",
    ),
    "nobody, somebody": ("For a second nobody had the lock.", "For a second the lock was free."),
    ", say": ("Start three servers, say with Compose.", "Failed reads, say what you like."),
    "so many": ("Run so many seeds in a row.", "Run many seeds in a row."),
    "of ours": ("It removes a node of ours.", "It removes one of our nodes."),
    "the place of": ("Uses memory in the place of disks.", "Uses memory instead of disks."),
    "need not": ("A plugin need not register itself.", "A plugin does not need a file."),
    "heed": ("The resource heeds no tokens.", "The resource checks no tokens."),
    "held to": ("The client is held to that.", "The client held the lock."),
    "stands in": ("Each verb stands in its file.", "The name stands for its meaning."),
    "what as a noun": ("Delete what was not synced.", "The docstring says what it does."),
    "go on": ("The run goes on after it.", "The run goes from A to B."),
    "gone on": ("The client went on without it.", "The client went from A to B."),
    "is to be": ("The lease is to be lost.", "The lease is lost here."),
    "are to be": ("The clocks are to be skewed.", "The clocks are skewed here."),
    "nor": ("It reads no file, nor writes one.", "It neither reads nor writes files."),
    "the very": ("It is the very same class.", "It is very much the same class."),
    "for its beginning": ("It waits for its beginning.", "It waits for its client."),
    "let go of": ("The server lets go of keys.", "The server releases its keys."),
    "at it": ("A thread is at it still.", "A thread looks at it twice."),
    "find out": ("Find out how servers start.", "Find the servers that start."),
    "within reach": ("The server is not within reach.", "The server is not reachable."),
    "made small": ("The schedule is made small first.", "The schedule is shrunk first."),
    "is there": ("The key is there for long.", "The check fails: is there no key left."),
    "has none": ("A step that has none waits.", "A step that has no time waits."),
    "there is ... which": ("There is a lock which leaks.", "One of these locks leaks."),
    "is heard": ("The answer is heard too late.", "The answer arrives too late."),
    "for want of": ("It fails for want of memory.", "It fails without enough memory."),
}  # fmt: skip


def words(path, text):
    """Return the constructions of a file's sentences."""
    read = prose.sentences if path.endswith(".md") else prose.python_sentences
    return [each.construction.words for each in prose.flagged(read(path, text))]


@pytest.fixture
def checkout(tmp_path):
    """Return a function that writes a file, by default a tracked one, into a Git checkout."""

    def write(name, text, *, tracked=True):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if tracked:
            subprocess.run(["git", "-C", tmp_path, "add", name], check=True)
        return tmp_path

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return write


def test_each_construction_has_an_example():
    assert list(EXAMPLES) == [each.words for each in prose.CONSTRUCTIONS]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_construction_is_flagged_and_a_normal_sentence_is_not(name):
    flagged, normal = EXAMPLES[name]
    assert prose.construction_of(flagged).words == name
    assert prose.construction_of(normal) is None


@pytest.mark.parametrize("text", ["Who is told once more?", 'It asks "who has the lock?"'])
def test_a_question_is_not_flagged(text):
    assert words("a.md", text) == []


def test_a_fragment_of_three_words_is_not_flagged():
    assert words("a.md", "What came out") == []


@pytest.mark.parametrize(
    "text",
    [
        "Run this:\n\n```sh\necho so many words are told\n```\n",
        "Run this:\n\n    echo so many words are told\n",
        "The function `so_many, say told` returns its first argument.",
        "The text ``anew ` told`` is one span of code.",
        "The [page](beside/anew.md) has an address.",
        "<!-- told: so many words, once more -->",
    ],
)
def test_code_and_addresses_in_markdown_are_not_read(text):
    assert words("a.md", text) == []


def test_an_indented_line_after_a_line_of_prose_is_read():
    assert words("a.md", "- The first line of an item\n    is told what comes next.\n") == ["told"]


def test_each_cell_of_a_table_and_each_item_of_a_list_is_a_sentence():
    table = "| a lock is told this | a lock is started anew |\n| --- | --- |\n"
    assert words("a.md", table) == ["told", "anew"]
    assert words("a.md", "- a lock is told this\n- a lock is started anew\n") == ["told", "anew"]


def test_a_sentence_that_spans_lines_is_placed_at_its_first_line():
    text = "# Title\n\nOne short sentence here. The server\nis told of it, once\nmore.\n"
    (found,) = prose.flagged(prose.sentences("docs/a.md", text))
    assert (found.line, found.text) == (3, "The server is told of it, once more.")


def test_docstrings_comments_and_strings_of_code_are_read_with_their_lines():
    source = (
        '"""A module that is told things."""\n'
        "# A comment that spans two\n"
        "# lines is started anew.\n"
        "TEXT = 'the lease of X is over'  # no flag in this comment\n"
        '"""An attribute that is told things."""\n'
        "def f(x):\n"
        '    """The server is over by `then is told`."""\n'
        '    raise ValueError(f"{x} is no lock of "\n'
        '                     f"ours: choose {x} instead")\n'
    )
    found = prose.flagged(prose.python_sentences("checker/a.py", source))
    places = [(each.line, each.construction.words) for each in found]
    assert sorted(places) == [
        (1, "told"),
        (2, "anew"),
        (4, "is over"),
        (5, "told"),
        (7, "is over"),
        (8, "of ours"),
    ]


def test_code_in_a_docstring_is_not_read():
    assert words("a.py", '"""Run it.\n\nThus:\n\n    echo is told so many times\n"""\n') == []


def test_strings_in_tests_are_not_read_but_their_docstrings_are():
    source = '"""A module that is told things."""\nTEXT = "the lease of it is over"\n'
    assert words("checker/a.py", source) == ["told", "is over"]
    assert words("tests/checker/a.py", source) == ["told"]


def test_comments_apart_from_each_other_are_sentences_of_their_own():
    assert words("a.py", "# a lock that goes\n\n# on for ever is closed\n") == []
    assert words("a.py", "# a lock that goes\n# on for ever is closed\n") == ["go on"]


def test_a_folder_is_two_levels_deep_at_most():
    paths = ["README.md", "docs/a.md", "checker/lincheck/models/a.py"]
    assert [prose.folder_of(path) for path in paths] == [".", "docs", "checker/lincheck"]


def test_a_budget_that_is_exceeded_fails_with_the_place_and_a_suggestion(checkout, capsys):
    checkout("docs/a.md", "Normal words come first.\nThe server is told so.\n")
    root = checkout("tools/prose-budget.json", '{"docs": 0}')
    assert prose.main([], root) == 1
    out = capsys.readouterr().out
    assert "docs/a.md:2: The server is told so." in out
    assert "'told': name who reports or sends it" in out
    assert "docs: 1 sentences are hard to read, but its budget is 0; rewrite 1" in out


def test_a_budget_that_is_met_passes_and_other_folders_have_a_budget_of_zero(checkout, capsys):
    checkout("docs/a.md", "The server is told so.\n")
    root = checkout("tools/prose-budget.json", '{"docs": 1}')
    assert prose.main([], root) == 0
    assert capsys.readouterr().out == ""
    checkout("checker/a.md", "The server is told so.\n")
    assert prose.main([], root) == 1


def test_deleting_normal_sentences_exceeds_no_budget(checkout):
    checkout("docs/a.md", "Normal words come first. The server is told so.\n")
    root = checkout("tools/prose-budget.json", '{"docs": 1}')
    checkout("docs/a.md", "The server is told so.\n")
    assert prose.main([], root) == 0


def test_only_files_that_git_tracks_are_read(checkout):
    root = checkout("tools/prose-budget.json", "{}")
    checkout("docs/a.md", "The server is told so.\n", tracked=False)
    assert prose.main([], root) == 0


def test_lower_writes_lower_budgets_and_never_a_higher_one(checkout):
    checkout("docs/a.md", "The server is told so.\n")
    checkout("hunt/a.md", "The server is told so. The client is told so.\n")
    root = checkout("tools/prose-budget.json", '{"checker": 4, "docs": 3, "hunt": 1}')
    assert prose.main(["--lower"], root) == 1
    assert json.loads((root / "tools/prose-budget.json").read_text()) == {"docs": 1, "hunt": 1}


def test_list_shows_the_sentences_below_a_folder_and_their_share(checkout, capsys):
    checkout("docs/deep/er/a.md", "The server is told so. Normal words follow it.\n")
    root = checkout("tools/prose-budget.json", "{}")
    assert prose.main(["--list", "docs/deep"], root) == 0
    out = capsys.readouterr().out
    assert out.startswith("docs/deep/er/a.md:1: The server is told so.\n")
    assert out.endswith("docs/deep: 1 of 2 sentences (50.0 %)\n")
