"""The subscriptions at a Redis server, and the messages that it sends to subscribers.

A message goes to those whose subscription the server knows when it executes PUBLISH; it is lost for
all others. It is under way to each of them on its own (hunt/intercept/duplex.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from fencepost.hunt.models.redis.globs import matches
from fencepost.hunt.models.redis.replies import Push, Several

SUBSCRIBES = frozenset({"SUBSCRIBE", "PSUBSCRIBE"})
"""After them the server sends on the connection without a request."""
UNSUBSCRIBES = frozenset({"UNSUBSCRIBE", "PUNSUBSCRIBE"})


class Subscriber(Protocol):
    """A connection, with its own channels and patterns in the order of subscription."""

    channels: dict[str, None]
    patterns: dict[str, None]

    def push(self, reply: Any) -> None:
        """Send a message to the client."""


Listeners = dict[str, dict[Subscriber, None]]


class PubSub:
    """The subscribers of each channel and pattern, in the order of their subscription."""

    def __init__(self) -> None:
        self.channels: Listeners = {}
        self.patterns: Listeners = {}

    def execute(self, name: str, who: Subscriber, args: Sequence[str]) -> Several:
        """Execute one of the commands that subscribe or unsubscribe."""
        kind = name.lower()
        by_pattern = kind.startswith("p")
        mine = who.patterns if by_pattern else who.channels
        all_ = self.patterns if by_pattern else self.channels
        begins = name in SUBSCRIBES
        replies = Several()
        names: list[str | None] = [*(args or ([] if begins else mine))]
        for one in names or [None]:
            if one is not None and begins:
                mine[one] = None
                all_.setdefault(one, {})[who] = None
            elif one is not None:
                mine.pop(one, None)
                _leave(all_, one, who)
            many = len(who.channels) + len(who.patterns)
            replies.append(Push([kind, one, many]))
        return replies

    def leave(self, who: Subscriber) -> None:
        """Forget the subscriptions of a connection."""
        for mine, all_ in ((who.channels, self.channels), (who.patterns, self.patterns)):
            for one in mine:
                _leave(all_, one, who)
            mine.clear()

    def subscribers(self) -> Iterator[Subscriber]:
        for all_ in (self.channels, self.patterns):
            for listeners in all_.values():
                yield from listeners

    def publish(self, channel: str, message: str) -> int:
        """Send a message to all subscribers of a channel; return how many messages were sent."""
        sent = 0
        for who in [*self.channels.get(channel, ())]:
            who.push(Push(["message", channel, message]))
            sent += 1
        for pattern, listeners in [*self.patterns.items()]:
            if matches(pattern, channel):
                for who in [*listeners]:
                    who.push(Push(["pmessage", pattern, channel, message]))
                    sent += 1
        return sent

    def describe(self, args: Sequence[str]) -> Any:
        """Execute PUBSUB."""
        word, *rest = args
        match word.upper():
            case "CHANNELS":
                return [one for one in self.channels if not rest or matches(rest[0], one)]
            case "NUMSUB":
                return [part for one in rest for part in (one, len(self.channels.get(one, ())))]
        return len(self.patterns)  # NUMPAT


def _leave(all_: Listeners, name: str, who: Subscriber) -> None:
    listeners = all_.get(name, {})
    listeners.pop(who, None)
    if not listeners:
        all_.pop(name, None)
