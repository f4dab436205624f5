"""Faults of HTTP: requests that hang, are refused, come late, or whose answers are lost; watches
without events.

A proxy on the server's node (node/httpproxy.py) meets every request of the chosen clients.
`arguments.links` lists each client with a server, `kind` is one of KINDS, and `time_s` is the delay
of `slow` or the Retry-After of `429`. Everything else reaches the server as before, the requests of
other servers too. What hangs ends with the fault: the proxy's connections are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Any

from fencepost.nemesis.aiming import Aimed, Aiming, Points
from fencepost.nemesis.chains import PROBES
from fencepost.nemesis.cuts import impairs, links
from fencepost.nemesis.family import Colour, Family, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.iptables import PROBE_S
from fencepost.nemesis.nemesis import Fault, Leftover, Receipt
from fencepost.nemesis.site import Remote, Server, Site, ask
from fencepost.nemesis.targets import HOLDER, Drawn, Layout, listed, pick
from fencepost.nemesis.turns import deal, length

STATUSES = ("409", "429", "500", "503")
WATCHES = ("watch-ends", "watch-silent")
_DRAWN = ("hang", "reset", *STATUSES, "slow", "lost")
"""Without those of watches: most electors have none."""
_EFFECTS = {
    "hang": "late", "slow": "late", "reset": "reset", "lost": "reset",
    **dict.fromkeys(STATUSES, "refused"),
}  # fmt: skip
"""What a client sees of each. A few faults in turn have all of these."""
KINDS = (*_DRAWN, *WATCHES)
PROBE = "fencepost-probe"
"""The User-Agent by which the proxy knows a probe."""
TARGETS = ("client", "clients", HOLDER)
_FILE = "/run/fencepost/http.json"
_LEAST_S, _MOST_S = 0.5, 3600.0
"""The bounds of a delay: a probe must not see the answer."""
_RETRY_AFTER_S = 1.0
_OUTLAST = (0.5, 3.0)
"""The lengths, in leases, of a fault of the holder's requests. The next leader comes some time
after the lease, and it is its work that shows the harm."""
_SEEN = {
    "hang": "silent", "slow": "silent", "reset": "reset", "lost": "reset",
    **{status: status for status in STATUSES}, **dict.fromkeys(WATCHES, "200"),
}  # fmt: skip
"""What a probe meets while the fault is on. One that asks for a watch sees its beginning."""
_WORDS = {
    "hang": "hang",
    "reset": "are reset",
    **{status: f"are answered with {status}" for status in STATUSES},
    "slow": "are answered late",
    "lost": "are carried out, and their answers are lost",
    "watch-ends": "for a watch end without an event",
    "watch-silent": "for a watch have no event",
}
_DONE = {
    "hang": "left unanswered", "reset": "reset", "slow": "delayed", "lost": "lost",
    "watch-ends": "watches that were ended", "watch-silent": "watches that were silent",
}  # fmt: skip

Counts = dict[str, dict[str, int]]
"""What a proxy has counted: by the address of the client, or by link."""


class Http:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        kind, time_s = fault.arguments["kind"], fault.arguments.get("time_s", 0.0)
        rules = {}
        for server, clients in _by_server(fault).items():
            addresses = [self._site.address(client) for client in clients]
            port = str(self._site.port(server))
            found = self._http(server, "on", kind, port, repr(time_s), *addresses)
            rules[server] = int(found["rules"]) == len(clients)
        seen, met = self._probed(fault)
        right = [way for way, answer in seen.items() if answer == _SEEN[kind]]
        proxies = [server for server, there in rules.items() if there]
        how = (
            f"a proxy on {len(proxies)} of {len(rules)} servers; {len(right)} of {len(seen)} "
            f"probes met it: {_answers(seen)}"
        )
        proved = len(proxies) == len(rules) and 0 < len(seen) == len(right)
        return Receipt(proved, how, {"probes": seen, "requests": met})

    def heal(self, fault: Fault) -> Receipt:
        met: dict[str, Counts] = {}
        left = []
        for server in _by_server(fault):
            found = self._http(server, "off")
            met[server] = found["met"]
            left += [server] if found["left"] else []
        seen = self._until(fault, lambda way, answer: answer.isdigit())
        right = [way for way, answer in seen.items() if answer.isdigit()]
        counted = self._counted(fault, met)
        how = f"{_story(fault.arguments['kind'], counted)}; without it, {len(right)} of {len(seen)}"
        how += f" probes got the server's answer: {_answers(seen)}"
        how += f"; the proxy is still on {listed(left)}" if left else ""
        return Receipt(not left and len(right) == len(seen), how, {"requests": counted})

    def _probed(self, fault: Fault) -> tuple[dict[str, str], Counts]:
        """Probe each link until the proxy has counted a probe that met the fault. A probe that is
        silent may have been too slow to arrive."""
        wanted = _SEEN[fault.arguments["kind"]]
        counted: Counts = {}

        def met(way: str, answer: str) -> bool:
            return answer == wanted and counted[way]["probes"] > 0

        def count() -> None:
            shown = {server: self._http(server, "show")["met"] for server in _by_server(fault)}
            counted.update(self._counted(fault, shown))

        seen = self._until(fault, met, count)
        unmet = {way: f"{answer}, and the proxy met no probe" for way, answer in seen.items()}
        return {way: answer if met(way, answer) else unmet[way] for way, answer in seen.items()}, (
            counted
        )

    def _until(
        self,
        fault: Fault,
        enough: Callable[[str, str], bool],
        count: Callable[[], None] = lambda: None,
    ) -> dict[str, str]:
        """Probe until each answer is enough, PROBES times at most; `count` comes before a look."""
        seen: dict[str, str] = {}
        for _ in range(PROBES):
            answers = self._answers(fault)
            count()
            seen = {
                way: seen[way] if way in seen and enough(way, seen[way]) else answer
                for way, answer in answers.items()
            }
            if all(enough(way, answer) for way, answer in seen.items()):
                break
        return seen

    def _answers(self, fault: Fault) -> dict[str, str]:
        """Send one request on each link; return what came back."""
        clients: dict[str, list[str]] = {}
        for client, server in fault.arguments["links"]:
            clients.setdefault(client, []).append(server)
        with ThreadPoolExecutor(max(1, len(clients))) as pool:
            path = "/?watch=true" if fault.arguments["kind"] in WATCHES else "/"
            found = pool.map(lambda one: probe(self._site, one, clients[one], path), clients)
            return {
                _way(client, server): answer
                for client, answers in zip(clients, found, strict=True)
                for server, answer in answers.items()
            }

    def _counted(self, fault: Fault, met: Mapping[str, Counts]) -> Counts:
        """Return the counts of each link."""
        none = {"requests": 0, "faulted": 0, "probes": 0}
        return {
            _way(client, server): met[server].get(self._site.address(client), none)
            for client, server in fault.arguments["links"]
        }

    def _http(self, server: str, *words: str) -> dict[str, Any]:
        return ask(self._site.remote(server), "http", *words)


def probe(site: Site, client: str, servers: Sequence[str], path: str = "/") -> dict[str, str]:
    """Send a request for a path from a client's node to each server.

    Returns its status, "reset", "silent" (no answer in time), "closed", or "refused" (no
    connection).
    """
    script = "".join(
        _script(server, site.address(server), site.port(server), path) for server in servers
    )
    rows = site.remote(client).run(["bash", "-c", f"{script}wait"]).out.splitlines()
    return {server: _read(code, rest) for server, code, *rest in (row.split() for row in rows)}


def _script(name: str, address: str, port: int | None, path: str) -> str:
    request = (
        f"GET {path} HTTP/1.1\\r\\nHost: {address}\\r\\nUser-Agent: {PROBE}\\r\\n"
        "Connection: close\\r\\n\\r\\n"
    )
    send = (
        f'exec 3<>/dev/tcp/{address}/{port} || exit 7; printf "{request}" >&3; '
        "read -r line <&3 || exit 8; echo $line"
    )
    return f"(said=$(timeout {PROBE_S} bash -c '{send}' 2>&1); echo {name} $? $said) & "


def _read(code: str, said: Sequence[str]) -> str:
    match code:
        case "0" if said[:1] and said[0].startswith("HTTP/"):
            return said[1]
        case "124":
            return "silent"
        case "7":
            return "refused"
        case "8":
            return "reset" if "reset" in said else "closed"
    return f"exit code {code}"


def _way(client: str, server: str) -> str:
    return f"{client} to {server}"


def _by_server(fault: Fault) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for client, server in fault.arguments["links"]:
        found.setdefault(server, []).append(client)
    return found


def _answers(seen: Mapping[str, str]) -> str:
    return ", ".join(f"{way} {answer}" for way, answer in seen.items())


def _story(kind: str, counted: Mapping[str, Mapping[str, int]]) -> str:
    """Say what the proxies have done."""
    done = _DONE.get(kind, f"answered with {kind}")
    return "; ".join(
        f"of {many['requests']} requests from {way}, of which {many['probes']} were probes, "
        f"{many['faulted']} were {done}"
        for way, many in counted.items()
    )


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    """Draw requests of a client, of all clients or of the holder, to all servers; with a server as
    target, those of all clients to it."""
    _must_speak(at)
    kind = asked.variant or deal(random, "kind", _DRAWN, alike=_EFFECTS.get)
    where = asked.target or deal(random, "where", TARGETS)
    servers = [where] if where in at.servers else list(at.servers)
    clients = pick(random, at, "clients" if where in at.servers else where)
    arguments: dict[str, Any] = {
        "links": [[client, server] for server in servers for client in clients],
        "kind": kind,
    }
    if kind == "slow":
        arguments["time_s"] = round(max(_LEAST_S, random.uniform(0.3, 1.5) * at.ttl_s), 3)
    if kind == "429":
        arguments["time_s"] = _RETRY_AFTER_S
    return [Drawn([*clients, *servers], arguments)]


def _aimed(
    random: Random, at: Layout, asked: Asked, length_s: float, points: Points
) -> Aimed | None:
    if asked.target not in ("", "client", HOLDER):
        return None
    (drawn,) = draw(random, at, Asked(asked.family, HOLDER, asked.variant, text=asked.text))
    leases = length(random, f"length of {drawn.arguments['kind']}", *_OUTLAST)
    return Aimed(drawn.targets, drawn.arguments, leases * at.ttl_s)


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    _must_speak(at)
    kind, time_s = arguments.get("kind"), arguments.get("time_s", 0.0)
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r}: choose one of {', '.join(KINDS)}")
    if not isinstance(time_s, int | float) or not 0 <= time_s <= _MOST_S:
        raise ValueError(f"time_s {time_s!r} is out of range (0 to {_MOST_S:.0f})")
    if kind == "slow" and time_s < _LEAST_S:
        raise ValueError(f"time_s {time_s!r} is too short: slow answers take {_LEAST_S} s or more")
    given = arguments.get("links")
    if not isinstance(given, list) or not given or any(len(link) != 2 for link in given):
        raise ValueError("it needs links: a list of pairs of a client and a server")
    for client, server in given:
        if client not in (*at.clients, HOLDER) or server not in at.servers:
            raise ValueError(f"{client} to {server}: a link is from a client to a server")


def _must_speak(at: Layout) -> None:
    if not at.kind.http:
        raise ValueError(f"it needs servers that speak plain HTTP, and these are {at.kind.name}")


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """A cut hides what the proxy answers."""
    return not mine.links.isdisjoint(other.links)


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    given = links(targets, arguments)
    clients = list(dict.fromkeys(client for client, _ in given))
    servers = list(dict.fromkeys(server for _, server in given))
    kind = str(arguments.get("kind"))
    words = f"requests of {listed(clients)} to {listed(servers)} {_WORDS.get(kind, kind)}"
    return f"{words} ({arguments.get('time_s')} s)" if kind == "slow" else words


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    if server is None:
        return []
    # A node that was kept up may have an older image without this verb.
    output = remote.run(["fencepost-node", "http", "left"], check=False).out
    if '"left": true' not in output:
        return []
    off = partial(remote.run, ["fencepost-node", "http", "off"])
    return [Leftover("a proxy meets requests to its server", "removed its proxy of HTTP", off)]


FAMILY = Family(
    name="http",
    what="does harm to HTTP requests of clients: they hang, are reset, refused or answered late, "
    "their answers are lost, or watches have no events",
    receipt="a probe from each client meets it, and the proxy on the server's node has counted the "
    "probe; at the end, the requests that it met from each client, and a probe that the server "
    "answers",
    make=lambda site, chains: Http(site),
    draw=draw,
    describe=describe,
    strikes=("servers", "clients"),
    targets=TARGETS,
    variants=KINDS,
    validate=validate,
    aim=Aiming(draw=_aimed),
    meets=lambda asked: True,
    points="aimed",
    clashes=clashes,
    leftovers=leftovers,
    files=(_FILE,),
    ours_alone="it needs a proxy on the server's node",
    impairs=impairs,
    links=links,
    only_messages=True,
    colour=Colour("#b0637a", "#d68aa0"),
)
