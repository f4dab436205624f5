"""Check that prose stays plain: count the sentences that a reader has to decode, by folder.

    python tools/prose.py                 fail where a folder has more of them than its budget
    python tools/prose.py --list FOLDER   show them, each with its construction and a suggestion
    python tools/prose.py --lower         write lower budgets where folders have become better

It reads the files that git tracks: Markdown, docstrings, comments, and (outside tests/) the strings
of code, which are help texts, errors and verdicts. It skips code, questions and fragments of fewer
than four words. A construction is a pattern of words, so a sentence without one may still be hard
to read, and a sentence with one may be right: a budget may be above zero, but only falls.

A budget is a number of sentences, not a share: deleting good sentences breaks no budget. A folder
without a budget has a budget of zero.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
BUDGET = Path("tools/prose-budget.json")


@dataclass(frozen=True, slots=True)
class Construction:
    """Words that hide who does what, and what to write instead."""

    words: str
    pattern: re.Pattern[str]
    instead: str


_WORDS = (
    ("what came of", r"\bwhat (came|comes) (of|out)\b", "name the result"),
    ("came of", r"\b(came|come) (of|out|about)\b", "ended as, showed, happened"),
    ("comes of", r"\bcomes (of|about|out)\b", "results in, happens"),
    (
        "is over", r"\b(is|are|was|were|be|been) over\b(?! (\d|the|an?|its)\b)",
        "has ended, has expired, timed out",
    ),
    ("told", r"\btold\b", "name who reports or sends it"),
    ("once more", r"\bonce more\b", "again; or retry"),
    ("anew", r"\banew\b", "again; or restart"),
    ("beside", r"\bbeside\b", "next to, in addition to, while"),
    (
        "who as a subject without a noun",
        r"(?<!person )(?<!people )(?<!user )(?<!users )(?<!reader )(?<!readers )(?<!anyone )"
        r"\bwho(ever)? (was|is|has|had|asks?|changes|holds|reaches|looks|waited|died|cannot|could"
        r"|says|plays|goes|gives|watches)\b",
        "name the agent: the client that holds the lock",
    ),
    ("nobody, somebody", r"\b(nobody|somebody)\b", "name the agent: no client"),
    (
        ", say", r", say\b(?! (nothing|so|that|what|which|how|why|where|whether|if)\b)",
        "for example, such as",
    ),
    ("so many", r"\bso many\b", "give the number or its name"),
    ("of ours", r"\bof (one's own|yours|theirs|ours)\b", "your, its; name the owner"),
    ("the place of", r"\bin the place of\b", "instead of"),
    ("need not", r"\bneed not\b", "does not have to"),
    ("heed", r"\bheed(s|ed|ing)?\b", "checks, follows"),
    ("held to", r"\bheld (against|to|equal)\b", "compared with, checked against"),
    (
        "stands in", r"\bstands? (in|there|on|with|at|behind|beside)\b",
        "is in, replaces, blocks",
    ),
    (
        "what as a noun",
        r"\bwhat (?!(it|they|each) (do|does|did|means?|needs?)\b)"
        r"(is|was|were|has|had|are|it|they|an?|the|one|each|else|goes|can|cannot|does|did|nobody"
        r"|somebody|others)\b",
        "name the thing: the files that, the error",
    ),
    ("go on", r"\bgo(es)? on\b", "continues, resumes, is in progress"),
    ("gone on", r"\b(went|gone|going) on\b", "continued, resumed, in progress"),
    ("is to be", r"\bis to (be|come|have|say)\b", "must, will; or an active verb"),
    ("are to be", r"\bare to (be|come|have)\b", "must, will; or an active verb"),
    ("nor", r"^(?!.*\bneither\b).*\bnor\b", "and no, or"),
    ("the very", r"\bthe very\b", "the same, exactly the"),
    ("for its beginning", r"\bwaits? for its (begin|end)", "until it starts, until it ends"),
    ("let go of", r"\blets? go of\b", "releases, drops"),
    ("at it", r"(?<!look )(?<!looks )(?<!looking )\bat it\b", "name the work"),
    ("find out", r"\b(finds?|found) out\b", "determine, detect, check"),
    ("within reach", r"\bwithin reach\b", "reachable, available"),
    ("made small", r"\b(made|make|makes|making) small\b", "shrunk"),
    ("is there", r"\bis there\b(?! (an?|no|any)\b)", "exists, is present"),
    ("has none", r"\bhas none\b", "has no X; name X"),
    ("there is ... which", r"\bthere (is|are)\b[^,;.]* which\b", "begin with it"),
    ("is heard", r"\b(is|are|was|were) heard\b", "received, reported"),
    ("for want of", r"\bfor want of\b", "because there is no, without"),
)  # fmt: skip

CONSTRUCTIONS = tuple(
    Construction(words, re.compile(pattern, re.IGNORECASE), instead)
    for words, pattern, instead in _WORDS
)

_ANY = re.compile("|".join(pattern for _, pattern, _ in _WORDS), re.IGNORECASE)
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(r"<!--.*?-->|(?<=\])\([^)\s]*\)", re.DOTALL)
_CODE = re.compile(r"(`+)(?:(?!\n\s*\n).)+?\1", re.DOTALL)
_BREAK = re.compile(r"(?<=[.;:?!])\s+|\n\s*\n\s*|\n\s*(?:[-*#>]+|\d+\.)\s+|\s*\n?\|\s*")
_LEAST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its construction, or None for a plain one. `line` counts from 1."""

    path: str
    line: int
    text: str
    construction: Construction | None

    def __str__(self) -> str:
        assert self.construction is not None
        hint = f"{self.construction.words!r}: {self.construction.instead}"
        return f"{self.path}:{self.line}: {self.text}\n    {hint}"


def sentences(path: str, text: str, line: int = 1) -> Iterator[Sentence]:
    """Yield the sentences of a text that begins in this line of the file, without its code."""
    masked = _masked(text)
    start = 0
    for end, following in (*(match.span() for match in _BREAK.finditer(masked)), (len(text),) * 2):
        piece = masked[start:end]
        if len(piece.split()) >= _LEAST_WORDS:
            begin = start + len(piece) - len(piece.lstrip())
            shown = " ".join(text[begin:end].split()).lstrip("#>*- ")
            yield Sentence(path, line + text.count("\n", 0, begin), shown, construction_of(piece))
        start = following


def construction_of(sentence: str) -> Construction | None:
    """Return the first construction that the sentence uses, None for questions and plain ones."""
    sentence = " ".join(sentence.split())
    if sentence.rstrip("\"'”)*_").endswith("?") or not _ANY.search(sentence):
        return None
    return next(each for each in CONSTRUCTIONS if each.pattern.search(sentence))


def _masked(text: str) -> str:
    """Replace code and links' addresses by as many other characters; keep the lines."""
    text = _FENCED.sub(lambda match: _blank(match[0], " "), text)
    text = _HIDDEN.sub(lambda match: _blank(match[0], " "), text)
    lines, is_code, after_blank = [], False, True
    for line in text.split("\n"):
        is_blank = not line.strip()
        is_code = not is_blank and line.startswith("    ") and (is_code or after_blank)
        lines.append(" " * len(line) if is_code else line)
        after_blank = is_blank or is_code
    return _CODE.sub(lambda match: _blank(match[0], "X"), "\n".join(lines))


def _blank(text: str, by: str) -> str:
    return re.sub(r"[^\n]", by, text)


def python_sentences(path: str, source: str) -> Iterator[Sentence]:
    """Yield the sentences of docstrings and comments and, outside tests/, of other strings.

    Every string that is a statement is a docstring: attributes have some too.
    """
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
            if isinstance(node.value.value, str):
                yield from sentences(path, inspect.cleandoc(node.value.value), node.lineno)
    for line, text in _comments(source):
        yield from sentences(path, text, line)
    if not path.startswith("tests/"):
        for line, text in _strings(tree, docstrings):
            yield from sentences(path, text, line)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments with their first lines; join those on adjacent lines of their own."""
    if "#" not in source:
        return
    first, column, lines = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, at = token.start
        alone = token.line.lstrip().startswith("#")
        if not (alone and lines and at == column and line == first + len(lines)):
            if lines:
                yield first, "\n".join(lines)
            first, column, lines = line, at if alone else -1, []
        lines.append(token.string.lstrip("#! ").rstrip())
    if lines:
        yield first, "\n".join(lines)


def _strings(tree: ast.AST, docstrings: Container[int]) -> Iterator[tuple[int, str]]:
    """Yield strings and f-strings, with X for each value in them, and their first lines."""
    inner = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node) if part is not node
    }  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in docstrings or id(node) in inner:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield node.lineno, "".join(map(str, parts))


def folder_of(path: str) -> str:
    """Return the folder that a file counts for: two levels at most, "." for the top."""
    return str(PurePosixPath(*PurePosixPath(path).parent.parts[:2]))


def read(root: Path) -> dict[str, list[Sentence]]:
    """Return all sentences of the files that git tracks, by folder."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "*.md", "*.py"], capture_output=True, check=True
    )
    found: dict[str, list[Sentence]] = defaultdict(list)
    for path in listed.stdout.decode().split("\0"):
        if path and (root / path).is_file():
            text = (root / path).read_text("utf-8")
            parts = sentences(path, text) if path.endswith(".md") else python_sentences(path, text)
            found[folder_of(path)] += parts
    return found


def flagged(found: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences that use a construction."""
    return [sentence for sentence in found if sentence.construction]


def exceeded(
    found: Mapping[str, Sequence[Sentence]], budgets: Mapping[str, int]
) -> dict[str, list[Sentence]]:
    """Return the flagged sentences of each folder that has more of them than its budget."""
    all_flagged = {folder: flagged(found[folder]) for folder in sorted(found)}
    return {folder: bad for folder, bad in all_flagged.items() if len(bad) > budgets.get(folder, 0)}


def lowered(found: Mapping[str, Sequence[Sentence]], budgets: Mapping[str, int]) -> dict[str, int]:
    """Return budgets of at most the present counts; folders without flagged sentences have none."""
    counts = {folder: len(flagged(found.get(folder, ()))) for folder in budgets}
    return {
        folder: min(budgets[folder], count) for folder, count in sorted(counts.items()) if count
    }


def check(found: Mapping[str, Sequence[Sentence]], budgets: Mapping[str, int]) -> int:
    """Print the folders that exceed their budgets with their sentences; return the exit code."""
    over = exceeded(found, budgets)
    for folder, bad in over.items():
        print(*bad, sep="\n")
        print(
            f"{folder}: {len(bad)} sentences are hard to read, but its budget is "
            f"{budgets.get(folder, 0)}; rewrite {len(bad) - budgets.get(folder, 0)} of those above"
        )
    return 1 if over else 0


def show(found: Sequence[Sentence], folder: str) -> None:
    """Print the flagged sentences of a folder, and their share."""
    bad = flagged(found)
    print(*bad, sep="\n")
    share = f" ({100 * len(bad) / len(found):.1f} %)" if found else ""
    print(f"{folder}: {len(bad)} of {len(found)} sentences{share}")


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--list", metavar="FOLDER", help="show the flagged sentences below FOLDER")
    parser.add_argument("--lower", action="store_true", help="lower budgets to present counts")
    given = parser.parse_args(arguments)
    found = read(root)
    if given.list is not None:
        inside = PurePosixPath(given.list)
        everywhere = [each for folder in sorted(found) for each in found[folder]]
        show([each for each in everywhere if PurePosixPath(each.path).is_relative_to(inside)],
             given.list)  # fmt: skip
        return 0
    budgets = json.loads((root / BUDGET).read_text("utf-8"))
    if given.lower:
        (root / BUDGET).write_text(json.dumps(lowered(found, budgets), indent=2) + "\n", "utf-8")
    return check(found, budgets)


if __name__ == "__main__":
    sys.exit(main())
