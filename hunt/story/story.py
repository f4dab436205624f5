"""Tells the story of a schedule: numbered steps in words, up to the broken promise.

The story contains the faults and the ops that matter to the promise: which servers granted the
lock, which values clients wrote, how their releases ended. It omits ops that changed nothing, such
as a refused request, or a read if the promise does not concern data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.checkers import CHECKERS
from fencepost.checker.history.history import NEMESIS, SPONTANEOUS
from fencepost.checker.verdict import Verdict
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Refusal, Wire
from fencepost.hunt.sim.record import Row
from fencepost.nemesis.targets import listed
from fencepost.workloads.locks.redis import RELEASE

_DOES = {
    "acquire": "asks for the lock",
    "extend": "extends its lease",
    "release": "releases",
    "read": "reads",
    "write": "writes",
    "close": "closes",
}
_GRANTED = "{} is granted the lock"


@dataclass(frozen=True)
class Step:
    """A step of the story: its time (ns), its node, and a sentence."""

    time_ns: int
    who: str
    words: str


@dataclass
class _Answers:
    """The servers' answers to one op of a client: which granted it and when, and which did not."""

    yes: dict[str, int] = field(default_factory=dict)
    no: dict[str, None] = field(default_factory=dict)


class Teller:
    """Observes the replay of a run (network.Tap), and tells it in steps."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._requests: list[tuple[int, str, str, tuple[Any, ...], Any]] = []
        self._missing: list[tuple[int, str, str, tuple[Any, ...]]] = []
        # The owner of the key on each server, and since when.
        self._owners: dict[str, tuple[int, str]] = {}
        self._asking: dict[str, int] = {}
        # The current op of each client, and since when; the end of the lease that each hold
        # believes in.
        self._current: dict[str, tuple[str, int]] = {}
        self._until: dict[str, int] = {}

    def handled(self, link: Wire, command: tuple[Any, ...], reply: Any) -> None:
        now = link.network.world.now
        self._requests.append((now, link.client.name, link.server.name, command, reply))

    def lost(self, link: Wire, command: tuple[Any, ...]) -> None:
        now = link.network.world.now
        self._missing.append((now, link.client.name, link.server.name, command))

    def refused(self, link: Wire) -> None:
        """Do nothing: the client's ops show the effect."""

    def about(self, run: Run, until: int, data: bool) -> None:
        """Collect the steps until this time. `data`: reads and writes matter."""
        ok = _granted(run.rows)
        if run.denied:
            until = min(until, run.healed_ns - 1)  # recoveries after that do not matter
        for place, row in enumerate(run.rows):
            time, process, type, f, value, error, node, _ = row
            if time > until:
                break
            if process == NEMESIS:
                if type == "ok" and value["phase"] == "start":
                    self._so_far(time)
                    target = str(value["targets"][0])
                    words = value["arguments"]["words"] + self._where(target, time)
                    self.steps.append(Step(time, target, _sentence(words)))
                continue
            who = str(node)
            begun = self._current.get(who, ("", time))[1]
            late = self._late(who, type, value, time)
            if type == "invoke":
                self._current[who] = f, time
            elif f not in SPONTANEOUS:
                self._current.pop(who, None)
            if f == "acquire":
                if type == "invoke":
                    if place in ok:
                        self._asking[who] = time
                elif type == "ok":
                    self._grant(run, who, time, value)
                elif type == "info" and (unknown := self._unknown_grant(who, begun, time)):
                    self.steps.append(Step(time, who, unknown))
                elif not run.came_back and (
                    until - time < run.setting.bound_ns // 2 or time > run.worked_ns
                ):
                    words = f"{who} asks for the lock in vain, although no other client asks."
                    if not any(step.words == words for step in self.steps):
                        self.steps.append(Step(time, who, words))
            elif type != "invoke" and (
                sentence := _op_sentence(who + late, f, type, value, error, data)
            ):
                self.steps.append(Step(time, who, sentence))

    def _where(self, who: str, time: int) -> str:
        """Return in which op a fault meets a client."""
        if who not in self._current:
            return ""
        f, since = self._current[who]
        asked = [
            (str(command[0]), server)
            for at, client, server, command, _ in self._requests
            if client == who and since <= at <= time
        ]
        if f == "acquire" or not asked:
            return f" while it {_DOES[f]}"
        return f" while it {_DOES[f]}, after its {asked[-1][0]} at {asked[-1][1]}"

    def _late(self, who: str, type: str, value: dict[str, Any], time: int) -> str:
        """Describe that a client uses a hold whose lease has expired."""
        hold = str(value.get("hold"))
        if type == "ok" and value.get("deadline") is not None:
            self._until[hold] = value["deadline"]
        begun = self._current.get(who, ("", time))[1]
        over = type != "invoke" and begun >= self._until.get(hold, begun + 1)
        return (
            f", whose lease expired {(begun - self._until[hold]) / 1e9:.3g} s ago," if over else ""
        )

    def _so_far(self, time: int) -> None:
        """Tell which servers have granted part of a lock that a client is about to acquire."""
        for who, since in self._asking.items():
            answers = self._answers_to(who, since, time)
            new = [server for server in answers.yes if self._owners.get(server, (0, ""))[1] != who]
            if new:
                words = f"{who} asks for the lock: {self._granting(who, answers, new, None)} "
                words += "grants it." if len(new) == 1 else "grant it."
                self.steps.append(Step(time, who, words))
                self._own(answers, who)

    def _grant(self, run: Run, who: str, time: int, value: dict[str, Any]) -> None:
        answers = self._answers_to(who, self._asking.pop(who, 0), time)
        words = f"{who} begins to lead" if run.setting.elector else _GRANTED.format(who)
        if answers.yes:
            words += f" by {self._granting(who, answers, list(answers.yes), run)}"
            deaf = [n for n in run.setting.servers if n not in answers.yes and n not in answers.no]
            if deaf:
                words += f"; {listed(deaf)} {'does' if len(deaf) == 1 else 'do'} not hear of it"
        self._own(answers, who)
        token = "" if value["token"] is None else f", with token {value['token']}"
        self.steps.append(Step(time, who, f"{words}{token}."))

    def silent(self, run: Run, piece: dict[str, Any], until: int) -> list[Step]:
        """Tell since when no request of the first of two leaders has arrived, if that is long."""
        ops = piece.get("ops") or ()
        who, servers = str(run.rows[ops[0]][6]) if ops else "", run.setting.servers
        arrived = [
            (at, server)
            for at, client, server, _, _ in self._requests
            if client == who and server in servers and at <= until
        ]
        at, server = max(arrived, default=(until, ""))
        if until - at < run.setting.ttl_ns // 2:
            return []
        words = (
            f"No request of {who} has reached {server} since {at / 1e9:.3f} s. It is still at "
            "work: its elector has not called stopped."
        )
        return [Step(until, who, words)]

    def _unknown_grant(self, who: str, since: int, time: int) -> str:
        """Describe a grant by servers of which the client does not know; "" without one."""
        answers = self._answers_to(who, since, time)
        if not answers.yes:
            return ""
        self._own(answers, who)
        grants = "grants it" if len(answers.yes) == 1 else "grant it"
        servers = self._granting(who, answers, list(answers.yes), None)
        return f"{who} asks for the lock: {servers} {grants}, and its op ends with no outcome."

    def _own(self, answers: _Answers, who: str) -> None:
        self._owners |= {server: (at, who) for server, at in answers.yes.items()}

    def _granting(self, who: str, answers: _Answers, servers: list[str], run: Run | None) -> str:
        """Name these servers, and why each could grant the lock although another client had it."""
        why = {name: self._why(who, name, answers.yes[name], run) for name in servers}
        groups: dict[str, list[str]] = {}
        for name, words in why.items():
            groups.setdefault(words, []).append(name)
        parts = [
            f"{listed(names)} ({words})" if words else listed(names)
            for words, names in groups.items()
        ]
        return ", and ".join(parts)

    def _why(self, who: str, server: str, at: int, run: Run | None) -> str:
        since, other = self._owners.get(server, (0, ""))
        mine = not other or other == who or since == at
        if run is None or mine or at - since >= run.setting.ttl_ns:
            return ""
        ops = [row for row in run.rows if row[1] == NEMESIS and row[0] <= at]
        # The record has the facts at the start of a fault.
        impairs = {row[4]["fault"]: row[4]["impairs"] for row in ops if row[4].get("forgets")}
        met = [(row[4]["fault"], row[0]) for row in ops if server in row[4]["targets"]]
        if any(impairs.get(fault) and since <= time for fault, time in met):
            return f"which forgot {other}'s key"
        # A server that answers without a break keeps its data, and ends leases early.
        if any(impairs.get(fault) == [] for fault, _ in met):
            return f"{other}'s key has expired there"
        if self._gave_away(run, other, server, since, at):
            return f"{other} has deleted its key there, while it extended its lease"
        return ""

    def _gave_away(self, run: Run, who: str, server: str, since: int, until: int) -> bool:
        """Return whether an extension deleted the key that it should have kept."""
        deleted = (
            time
            for time, client, at, command, reply in self._requests
            if (client, at) == (who, server) and command[:2] == ("EVAL", RELEASE) and reply == 1
        )
        time = next((time for time in deleted if since <= time <= until), None)
        if time is None:
            return False
        begun = [row[3] for row in run.rows if row[6] == who and row[2] == "invoke"
                 and row[0] <= time]  # fmt: skip
        return begun[-1:] == ["extend"]

    def _answers_to(self, who: str, since: int, until: int) -> _Answers:
        """Return the last answer of each server, in the last round of requests."""
        answers = _Answers()
        for time, client, server, command, reply in self._requests:
            if client != who or not since <= time <= until:
                continue
            if not _asks(command):
                answers = _Answers() if command[:2] == ("EVAL", RELEASE) else answers
                continue
            answers.yes.pop(server, None)
            answers.no.pop(server, None)
            if reply and not isinstance(reply, Refusal):
                answers.yes[server] = time
            else:
                answers.no[server] = None
        for time, client, server, command in self._missing:
            if client == who and since <= time <= until and _asks(command):
                answers.yes.pop(server, None)
        return answers


def _granted(rows: Sequence[Row]) -> dict[int, int]:
    """Return the indices of invocations of granted acquires, each with the index of its
    completion."""
    begun: dict[Any, int] = {}
    found: dict[int, int] = {}
    for place, row in enumerate(rows):
        if row[3] == "acquire":
            if row[2] == "invoke":
                begun[row[1]] = place
            elif row[2] == "ok":
                found[begun[row[1]]] = place
    return found


def acquires(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Return the first and last steps of each granted acquire."""
    return [(rows[begin][-1], rows[end][-1]) for begin, end in _granted(rows).items()]


def tell(run: Run, teller: Teller, broken: dict[str, Verdict]) -> list[Step]:
    """Return the story of a run that broke promises, mainly of the first of `broken`."""
    name, verdict = next(iter(broken.items()))
    checker = CHECKERS[name]
    until = run.world.now if checker.of_time else _shown(run.rows, verdict)
    teller.about(run, until, not {"clients", "resource"}.isdisjoint(checker.about))
    if run.setting.elector and verdict.evidence:
        teller.steps += teller.silent(run, verdict.evidence[0], until)
    what = _shorter(verdict.evidence[0]) if verdict.evidence else verdict.summary
    return [*teller.steps, Step(until, "", f"{name} is violated: {what}")]


def _shown(rows: Sequence[Row], verdict: Verdict) -> int:
    """Return the time at which the first evidence is complete: its last op has been answered."""
    if not verdict.evidence:
        return rows[-1][0]
    piece = verdict.evidence[0]
    ends = [int(piece.get("time_ns", 0))]
    for index in piece.get("ops") or ():
        op = rows[index]
        if op[2] == "invoke":
            answers = (row[0] for row in rows[index + 1 :] if row[1] == op[1] and row[3] == op[3])
            ends.append(next(answers, op[0]))
    return max(ends)


def _shorter(piece: dict[str, Any]) -> str:
    """Return evidence without its causes and the active faults, which the story has shown."""
    what = str(piece["what"])
    marks = [link["what"] for link in piece.get("cause", [])[:1]]
    for mark in (*marks, "On at that time:", "No fault was on at that time."):
        what = what.partition(f" {mark}")[0]
    return what


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words.startswith("the ") else f"{words}."


def _asks(command: tuple[Any, ...]) -> bool:
    """Return whether this command requests the lock."""
    if command[0] == "SET":
        return True
    return command[0] == "EVAL" and "'NX'" in command[1]


def _op_sentence(who: str, f: str, type: str, value: dict[str, Any], error: Any, data: bool) -> str:
    """Describe an op if it matters; else return ""."""
    match f, type:
        case "release", "ok":
            return f"{who} releases, which is answered ok."
        case "release", "fail":
            return f"{who} releases; the lock answers that the hold has already ended."
        case "release", "info":
            return f"{who} releases; whether that reached the lock is not known."
        case "extend", "ok":
            return f"{who} extends its lease."
        case "extend", _:
            return f"{who} tries to extend its lease: {error.text}."
        case "lost", _:
            return f"{who} considers its hold lost: {error.text}."
        case "read", "ok" if data and value.get("hold"):
            return f"{who} reads version {value['version']}."
        case "write", "ok" if data:
            based = f"on top of version {value['version']}"
            return f"{who} writes {based}, and is given version {value['stored']}."
        case "write", "fail" if data:
            return f"{who} writes on top of version {value['version']}: refused."
    return ""


def numbered(steps: Sequence[Step]) -> list[str]:
    return [f"{number}. {step.words}" for number, step in enumerate(steps, 1)]


_LANE = 46


def drawn(steps: Sequence[Step], run: Run) -> list[str]:
    """Draw the story over time: a lane for each client and for each server that a fault
    affected."""
    names = [*run.setting.clients, *run.setting.servers]
    lanes = [name for name in names if any(step.who == name for step in steps)]
    count = len(steps)
    width = max(map(len, lanes), default=0)
    places = [round(number * (_LANE - 1) / max(1, count - 1)) for number in range(count)]
    found = []
    for name in lanes:
        line = ["·"] * _LANE
        for number, step in enumerate(steps):
            if step.who == name or (not step.who and name in run.setting.clients):
                line[places[number]] = str((number + 1) % 10) if step.who else "×"
        found.append(f"{name:<{width}}  {''.join(line)}")
    return found
