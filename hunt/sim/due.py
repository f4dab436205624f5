"""The message that is due as a fault is injected: its ends, and the ops that the fault strikes."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.network import Request
from fencepost.hunt.sim.world import Event


def ends(request: Request) -> tuple[str, str]:
    """Return the sender and the receiver of a message that is under way."""
    client, server = request.link.client.name, request.server.name
    return (server, client) if request.back else (client, server)


def describe(request: Request) -> str:
    """Describe a message that is under way, as part of a sentence."""
    what = "the reply" if request.back else "the request"
    source, to = ends(request)
    return f"{what} of {source} to {to}"


def kind(event: Event | None) -> str:
    """Return the kind of a due event: request, reply, wake (the end of a wait), or "" for none."""
    if event is None:
        return ""
    if isinstance(event, Request):
        return "reply" if event.back else "request"
    return "wake"


def struck(
    clients: Sequence[ClientNode], client: int | None, event: Event | None
) -> tuple[list[str], str]:
    """Return the ops that an action strikes before an event, and the message that is due.

    An action about a client strikes its op, and the message only if that client sent it or receives
    it. Any other action strikes the op of the client whose message is due, else those of all.
    """
    met = kind(event)
    whose = event.link.client if isinstance(event, Request) else event and event.node
    if client is not None:
        node = clients[client]
        return [node.activity], met if whose is node else ""
    if isinstance(event, Request) and isinstance(whose, ClientNode):
        return [whose.activity], met
    return [one.activity for one in clients], met
