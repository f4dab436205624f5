"""Operations: the history as the model sees it, divided into independent objects."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fencepost.checker.lincheck.history import BadHistory, Call, calls
from fencepost.checker.lincheck.model import Action, BadValue, Model


class Operation(NamedTuple):
    """A call that carries information. `id` is the position of its invocation in the history, from
    0; `returned` that of its completion, None if it may happen at any later time, or never. `time`
    and `ended` are the times of the two events in ns, or None. `line`: from 1."""

    id: int
    returned: int | None
    action: Action
    process: int | str
    time: int | None
    ended: int | None
    line: int


class Objects(NamedTuple):
    """`parts`: partition key -> its operations in the order of their completion, pending ones by
    where they were given up. `operations`: their number. `times`: whether all events have a time,
    if any has."""

    parts: dict[Hashable, list[Operation]]
    operations: int


def objects(
    history: Iterable[tuple[int, Mapping[str, Any]]], model: Model, *, partition: bool = True
) -> Objects:
    """Read (line, event) pairs into the model's objects. Raises BadHistory with the line."""
    return sorted_out(calls(history), model, partition=partition)


def sorted_out(history: Iterable[Call], model: Model, *, partition: bool = True) -> Objects:
    """Do the same as `objects` for calls in the order of their completion."""
    parts: dict[Hashable, list[Operation]] = {}
    looked_at = 0
    for call in history:
        f = call.f
        if f not in model.functions:
            if f in model.ignored:
                continue
            raise unknown_function(call, model)
        looked_at += 1
        operation = read(call, model)
        if operation is None:
            continue
        try:
            key = model.partition(call) if partition else None
        except BadValue as error:
            raise BadHistory(str(error), call.line) from None
        part = parts.get(key)
        if part is None:
            parts[key] = [operation]
        else:
            part.append(operation)
    return Objects(parts, looked_at)


def read(call: Call, model: Model) -> Operation | None:
    """Convert a call to an operation, or None if it carries no information. Raises BadHistory."""
    try:
        action = model.action(call)
    except BadValue as error:
        raise BadHistory(str(error), call.line) from None
    if action is None or (call.returned is None and model.observes(action)):
        return None
    return Operation(
        call.invoked, call.returned, action, call.process, call.time, call.ended, call.line
    )


def unknown_function(call: Call, model: Model) -> BadHistory:
    return BadHistory(
        f"{model.name} knows {', '.join(sorted(model.functions))}, not {call.f!r:.40}", call.line
    )


class Events:
    """Yields (position, operation) of every invocation and return, in the order of the history; no
    return after the position `until`."""

    def __init__(self, operations: list[Operation], until: int | None = None) -> None:
        # Sorting ints is several times faster than sorting tuples, and the lists may have millions.
        self._operations = operations
        self._shift = shift = len(operations).bit_length()
        codes = [operation[0] << shift | index for index, operation in enumerate(operations)]
        codes += [
            operation[1] << shift | index
            for index, operation in enumerate(operations)
            if operation[1] is not None and (until is None or operation[1] <= until)
        ]
        codes.sort()
        self._codes = codes

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[tuple[int, Operation]]:
        return self.between(0, len(self._codes))

    def between(self, start: int, end: int) -> Iterator[tuple[int, Operation]]:
        """Yield the events from number `start` up to but not including number `end`."""
        shift, operations = self._shift, self._operations
        low = (1 << shift) - 1
        codes = self._codes
        for number in range(start, min(end, len(codes))):
            code = codes[number]
            yield code >> shift, operations[code & low]
