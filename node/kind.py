"""A kind of server, completely described by one frozen bundle.

Each kind has its own file, which both sides read. The harness takes the image, the ports, the
versions and the requirements on a host from it; the file itself is shipped to every node, where
`fencepost-node` calls its functions. So it imports only the standard library, this package and
files of other kinds. harness/servers/kinds.py registers the built-in kinds, an installed package
its own:

    [project.entry-points."fencepost.servers"]
    my-server = "my_package.my_server:KIND"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fencepost.node.watch import Bounds

Mark = dict[str, Any]


@dataclass(frozen=True)
class Start:
    """The parameters of a server's start: its node, and the folder for its data.

    `listen` are the IPv4 addresses that it may listen on, the one that others use first. `settings`
    are PERSISTENCE (none, everysec, always), CLOCK (real, fake), PRIMARY (an address to replicate
    from), FIRST (the address of the first server), SERVERS (their number) and JOIN (new, existing);
    each kind reads those that it knows.
    """

    node: str
    data: str
    version: str
    settings: Mapping[str, str]
    listen: tuple[str, ...] = ("0.0.0.0",)


@dataclass(frozen=True)
class Clock:
    """A clock that a server shows.

    `look` gives bounds of its offset from the node's own, or raises Hidden. With `mark`, the clock
    shows only its change since the mark that `look` is called with.
    """

    look: Callable[[Mark], Bounds]
    mark: Callable[[], Mark] | None = None


LeaseClock = Literal["", "wall", "monotonic"]
EndsWith = Literal["lease", "close", "connection"]
Survives = Literal["nothing", "crash", "power"]


@dataclass(frozen=True)
class Layer:
    """A part of the nodes' image that takes long to build, so that only clusters that need it do.

    `stage` is a Dockerfile of its own. `lines` put its outcome on the nodes' image, where `@layer`
    is its name. `what` names its outcome, and how long it takes.
    """

    stage: str
    lines: str
    what: str


@dataclass(frozen=True)
class Image:
    """A kind's additions to the nodes' image.

    `packages` come from Debian bookworm. `stage` is a stage of the Dockerfile before the nodes'
    own, for other sources; `before` and `after` are lines of the nodes' own stage, before and after
    the packages are installed. `layer` is only in the image of clusters that have such nodes.
    """

    packages: tuple[str, ...] = ()
    stage: str = ""
    before: str = ""
    after: str = ""
    layer: Layer | None = None


def _not_started_here(start: Start) -> Sequence[str]:
    raise OSError("this kind of server does not define how it is started")


@dataclass(frozen=True)
class Kind:
    """A kind of server. Functions run on the node; OSError means that the server does not answer.

    `module` is the bundle's own module: `__name__`. `modules` are others that the node needs, by
    name, of the standard library's Python alone. `command` starts the server; only servers that
    fencepost starts need one. `version` returns the version that the server reports. `serves` names
    the kind that this one can replace with `--server SERVES=NAME`; it has no nodes of its own then.
    `versions` can be chosen, the default first. `needs` are commands and paths that an external
    host must have. `disk_mb` is the size of a small disk, which the disk fault fills. `peers` are
    the ports, in addition to `port`, on which servers of a cluster talk to one another. `user`: the
    user that runs the server; if the node has no such user, root does. `files`: its own files on a
    node, besides its data, which are removed with the cluster. `forks`: its child processes
    are stopped and killed with it. `faketime`: its wall clock can be set by libfaketime. `elects`:
    its servers elect a leader among themselves; `loses`: a new leader may lack the latest grants,
    so that any fault may make the servers forget. `members`: the servers keep a member list, from
    which one that leaves is removed.

    What faults depend on:
    - `independent`: its servers do not know one another, so that a lock asks each in turn.
    - `lease_clock`: the clock that ends leases, "" without leases; `leader_leases`: only the
      leader's clock counts. `grain_s`: the resolution at which a server shows its wall clock (s).
    - `persistence`: the worst event that its acknowledged data survive, for each value of
      --persistence: `nothing`, a `crash` of the server, or a loss of `power`. {}: it has no choice.
    - `replaceable`: a server with an empty disk can replace one that has left.
    - `evicts`: it can be given a memory limit (maxmemory), at which it evicts keys.
    - `http`: its clients send it requests by plain HTTP on `port`.

    What other parts of fencepost use:
    - `crash_lines`: patterns (re) of the lines by which it logs that it ends by itself, or loses a
      process; `loss_lines`: of the lines that a fault explains by which it lost a process or its
      data. The checker `server-log` searches for both.
    - `ends_with`: how a grant of a lock on such servers ends, unless the lock declares another way.
    - `around_s`: the duration of a run in addition to the clients' work (s, estimated).
    - `model`: the model that the hunt simulates them with (hunt/models); "" if there is none.
    """

    name: str
    module: str
    port: int
    health: Callable[[], bool]
    versions: tuple[str, ...] = ("",)
    modules: tuple[str, ...] = ()
    command: Callable[[Start], Sequence[str]] = _not_started_here
    version: Callable[[], str] = lambda: ""
    serves: str = ""
    nodes: int = 1
    image: Image = Image()
    needs: tuple[str, ...] = ()
    peers: tuple[int, ...] = ()
    leads: Callable[[], bool] | None = None
    identity: Callable[[], str] | None = None
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    disk_mb: int = 256
    files: tuple[str, ...] = ()
    user: str = ""
    forks: bool = False
    faketime: bool = False
    elects: bool = False
    loses: bool = False
    members: bool = False
    independent: bool = False
    lease_clock: LeaseClock = ""
    leader_leases: bool = False
    grain_s: float = 0.0
    persistence: Mapping[str, Survives] = field(default_factory=dict)
    replaceable: bool = False
    evicts: bool = False
    http: bool = False
    crash_lines: tuple[str, ...] = ()
    loss_lines: tuple[str, ...] = ()
    ends_with: EndsWith = "lease"
    around_s: float = 6.0
    model: str = ""

    @property
    def starts(self) -> bool:
        """Whether fencepost starts such servers."""
        return self.command is not _not_started_here

    @property
    def role(self) -> str:
        """Return the kind whose nodes, data folder and log it uses."""
        return self.serves or self.name
