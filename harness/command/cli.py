"""The command line. Exit codes as in Jepsen: 0 valid, 1 invalid, 2 unknown, 254, 255."""

from __future__ import annotations

import signal
import sys
import traceback
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from fencepost.checker.history import HistoryError
from fencepost.checker.verdict import Valid
from fencepost.harness.cluster import hostsfile, image
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import NODES, role
from fencepost.harness.cluster.healing import amiss
from fencepost.harness.cluster.healing import heal as heal_nodes
from fencepost.harness.cluster.session import Way, claimed, claimed_hosts, session
from fencepost.harness.command import arguments, screen
from fencepost.harness.db.kinds import KINDS
from fencepost.harness.db.server import Server
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.run import bench as costs
from fencepost.harness.run import suite
from fencepost.harness.run.run import Outcome, judge
from fencepost.harness.run.run import run as run_test
from fencepost.harness.run.spec import ETCD, RESTART, Spec, choose, seconds, validate
from fencepost.harness.run.store import create, find, write
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.schedule import Scheduled
from fencepost.report import bench as report_bench
from fencepost.report import run as report_run
from fencepost.report.stored import ReportError
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.resource import GUARDS
from fencepost.workloads.scenarios.scenario import Scenario
from fencepost.workloads.scenarios.suites import SUITES

EXIT: dict[Valid, int] = {True: 0, False: 1, "unknown": 2}
BAD_ARGUMENTS, CRASHED, INTERRUPTED = 254, 255, 130

app = typer.Typer(
    help="Tests distributed locks: real servers, real faults, a verdict from the history alone.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
nemesis_app = typer.Typer(help="The faults.")
app.add_typer(nemesis_app, name="nemesis", no_args_is_help=True)
cluster_app = typer.Typer(help="The cluster of containers, apart from any test.")
app.add_typer(cluster_app, name="cluster", no_args_is_help=True)


def run() -> int:
    """The whole program; its exit code."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        code = app(standalone_mode=False)
    except (BadArguments, HistoryError, ReportError) as error:
        return _fail(error, BAD_ARGUMENTS)
    except (Crashed, RemoteError) as error:
        return _fail(error, CRASHED)
    except OSError as error:
        where = error.filename or "a file of the run"
        return _fail(f"{where}: {error.strerror or error}", CRASHED)
    except (KeyboardInterrupt, typer.Abort):
        print("fencepost: interrupted; what it had started is removed", file=sys.stderr)
        return INTERRUPTED
    except typer.Exit as error:
        return error.exit_code
    except Exception as error:
        # click's own errors of usage: it would exit with 2, which means "unknown" here.
        if hasattr(error, "format_message"):
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message())
                return BAD_ARGUMENTS
            return _fail(error.format_message(), BAD_ARGUMENTS)
        # Python would exit with 1, which means "invalid" here.
        traceback.print_exc()
        return _fail("crashed: this is a defect of fencepost's own", CRASHED)
    return code if isinstance(code, int) else 0


def _fail(error: object, code: int) -> int:
    print(f"fencepost: {error}", file=sys.stderr)
    return code


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@nemesis_app.command("list")
def nemesis_list() -> int:
    """Every family of faults, and what proves that one took hold."""
    screen.families_table(FAMILIES.values())
    return 0


Run = Annotated[str, typer.Argument(help="A run's folder, or TEST, or TEST/TIME.")]
LeaveUp = Annotated[bool, typer.Option("--leave-db-running", help="Leave the nodes up afterwards.")]
By = Annotated[
    str, typer.Option("--remote", help=f"How nodes are reached: {', '.join(arguments.REMOTES)}.")
]
HostsFile = Annotated[
    Path | None,
    typer.Option("--hosts", help="A TOML file of hosts to use for nodes, by ssh (docs/ssh.md)."),
]


@app.command()
def test(
    context: typer.Context,
    lock: Annotated[str, typer.Argument(help="The lock to test, redlock say.")] = "",
    nemesis: Annotated[
        str,
        typer.Option(
            help="Faults: FAMILY[:WHERE][/HOW][@INTERVAL][=WEIGHT],...  "
            f"of {', '.join(FAMILIES)}; `fencepost nemesis list` says more."
        ),
    ] = "",
    schedule: Annotated[
        Path | None, typer.Option(help="The faults from a file: JSON, or a run's test.json.")
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            help="A stored run's test once more, with the faults at the same offsets; on another "
            "LOCK, if one is named."
        ),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="CHECKER,...",
            help="Stop at the first violation that one of these checkers finds, ownership say.",
        ),
    ] = "",
    until_violation: Annotated[
        bool, typer.Option("--until-violation", help="Stop at the first violation of any kind.")
    ] = False,
    guard: Annotated[
        str, typer.Option(help="What the resource checks: `fencepost guards` lists them.")
    ] = "none",
    store: Annotated[
        str, typer.Option(help="Where the resource is kept: redis, postgres, etcd, server.")
    ] = "",
    shared: Annotated[
        float, typer.Option(help="Which share of the holds is shared, for locks with that mode.")
    ] = 0.0,
    locks: Annotated[
        int, typer.Option(help="Locks, each with a resource of its own; all clients use all.")
    ] = 1,
    etcd: Annotated[str, typer.Option(help=f"The servers' version: {', '.join(ETCD)}.")] = "3.5",
    time: Annotated[str, typer.Option("--time", "--time-limit", help="How long, 60s say.")] = "60s",
    seed: Annotated[str | None, typer.Option(help="What all random choices come from.")] = None,
    concurrency: Annotated[int, typer.Option(help="Clients, one a node.")] = 5,
    ttl: Annotated[str, typer.Option(help="The lease of a grant.")] = "2s",
    interval: Annotated[str, typer.Option(help="A family's faults are about so far apart.")] = "5s",
    persistence: Annotated[str, typer.Option(help="Redis: none, everysec, always.")] = "none",
    restart: Annotated[
        str, typer.Option(help=f"When a crashed server is back: {', '.join(RESTART)}, or a time.")
    ] = "at-once",
    failed_release: Annotated[
        str, typer.Option(help="What a release that failed did: ended, nothing.")
    ] = "ended",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="The lock's own, NAME=VALUE; x=x lists them."),
    ] = None,
    leave_up: LeaveUp = False,
    remote: By = "docker",
    hosts: HostsFile = None,
) -> int:
    """One test: clients take LOCK and write, faults strike, the history is judged."""
    faults: list[Scheduled] | None
    stops = arguments.until(until, until_violation)
    if replay is not None:
        arguments.alone("replay", context, arguments.BESIDE)
        spec, faults = arguments.replayed(replay, lock, option or [], stops)
    else:
        if not lock:
            raise BadArguments("which LOCK? `fencepost locks` lists them")
        spec = Spec(
            name=lock,
            lock=lock,
            options=arguments.lock_options(lock, option or []),
            guard=guard,
            store=store,
            shared=shared,
            locks=locks,
            etcd=etcd,
            nemesis=tuple(dict.fromkeys(e.strip() for e in nemesis.split(",") if e.strip())),
            time_s=seconds("time", time),
            seed=arguments.seed(seed),
            concurrency=concurrency,
            ttl_ms=arguments.ms("TTL", ttl),
            interval_s=seconds("interval", interval),
            persistence=persistence,
            restart=restart,
            failed_release=failed_release,
            until=stops,
        )
        spec, faults = arguments.scheduled(validate(spec), schedule)
    way = arguments.way(remote, hosts, [spec])
    screen.say(f"Testing {spec.lock}, seed {spec.seed}" + arguments.of_schedule(faults))
    with session(
        arguments.nodes([spec]), screen.say, leave_up, arguments.libraries([spec]), way
    ) as cluster:
        outcome = _carry_out(spec, cluster, schedule=faults)
    screen.verdict(outcome)
    return EXIT[outcome.valid]


def _session(
    specs: list[Spec], leave_up: bool = False, way: Way | None = None
) -> AbstractContextManager[Cluster]:
    """All the nodes that these tests need."""
    nodes, libraries = arguments.nodes(specs), arguments.libraries(specs)
    return session(nodes, screen.say, leave_up, libraries, way)


def _carry_out(
    spec: Spec,
    cluster: Cluster,
    scenario: Scenario | None = None,
    schedule: list[Scheduled] | None = None,
) -> Outcome:
    with screen.progress(spec.name) as progress:
        return run_test(spec, cluster, progress, scenario, schedule)


@app.command("suite")
def suite_command(
    names: Annotated[list[str], typer.Argument(help=f"Of: {', '.join(SUITES)}.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Only scenarios whose name begins so.")
    ] = None,
    seed: Annotated[str | None, typer.Option(help="What all random choices come from.")] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Append what came out to this file, in Markdown.")
    ] = None,
    leave_up: LeaveUp = False,
    remote: By = "docker",
    hosts: HostsFile = None,
) -> int:
    """Sets of scenarios, each against its published outcome; 0 if all came out so."""
    number = arguments.seed(seed)
    chosen = {
        name: _chosen(suite.items(choose("suite", name, SUITES), number), only or [])
        for name in dict.fromkeys(names)
    }
    specs = [item.spec for items in chosen.values() for item in items]
    bad = 0
    way = arguments.way(remote, hosts, specs)
    with session(
        arguments.nodes(specs), screen.say, leave_up, arguments.libraries(specs), way
    ) as cluster:
        for name, items in chosen.items():
            screen.say(f"Suite {name}, {len(items)} runs, seed {number}")
            folder, rows = suite.run(
                name,
                items,
                lambda item: _carry_out(item.spec, cluster, item.scenario),
                screen.suite_row,
            )
            screen.suite_table(rows)
            words = suite.words(rows)
            screen.CONSOLE.print(words)
            screen.CONSOLE.print(f"report: {folder / 'report.html'}", soft_wrap=True)
            if summary is not None:
                with summary.open("a", encoding="utf-8") as file:
                    file.write(suite.summary(name, number, rows))
            bad += sum(1 for row in rows if not row["as_expected"])
    return 1 if bad else 0


def _chosen(items: list[suite.Item], only: list[str]) -> list[suite.Item]:
    if not only:
        return items
    names = list(dict.fromkeys(item.name for item in items))
    for prefix in only:
        if not any(name.startswith(prefix) for name in names):
            raise BadArguments(
                f"there is no scenario {prefix!r}; choose one of: {', '.join(names)}"
            )
    return [item for item in items if any(item.name.startswith(prefix) for prefix in only)]


@app.command()
def bench(
    locks: Annotated[list[str], typer.Argument(help="The locks to measure, against redis.")],
    time: Annotated[str, typer.Option(help="How long each of the three phases takes.")] = "5s",
    seed: Annotated[str | None, typer.Option(help="What all random choices come from.")] = None,
) -> int:
    """What locks cost: latency, rate and requests, without faults, relative to one Redis."""
    time_s, number = seconds("time", time), arguments.seed(seed)
    names = list(dict.fromkeys([costs.BASELINE, *locks]))
    specs = [costs.spec_of(choose("lock", name, LOCKS), number) for name in names]
    with session(
        arguments.nodes(specs), screen.say, libraries=arguments.libraries(specs)
    ) as cluster:
        found = [costs.measure(spec, cluster, time_s, screen.say).to_json() for spec in specs]
        versions = cluster.versions
    folder = create("bench")
    command = f"fencepost bench {' '.join(locks)} --time {time_s:g}s --seed {number}"
    stored = {
        "baseline": costs.BASELINE,
        "locks": found,
        "command": command,
        "versions": versions,
    }
    write(folder / "bench.json", stored)
    screen.bench_table(report_bench.relative(found, costs.BASELINE))
    screen.CONSOLE.print(f"report: {report_bench.render(folder)}", soft_wrap=True)
    return 0


@app.command()
def locks() -> int:
    """Every lock that can be tested, and what it promises."""
    screen.locks_table(LOCKS.values())
    return 0


@app.command()
def guards() -> int:
    """Every guard by which a resource accepts writes, and what it needs."""
    screen.guards_table(GUARDS.values())
    return 0


@app.command()
def analyze(run: Run) -> int:
    """Check a stored history again, also what a killed run left."""
    outcome = judge(find(run))
    screen.verdict(outcome)
    return EXIT[outcome.valid]


@app.command()
def report(run: Run) -> int:
    """Write a run's report.html again."""
    screen.CONSOLE.print(str(report_run.render(find(run))), soft_wrap=True)
    return 0


@app.command()
def heal(
    check: Annotated[
        bool, typer.Option("--check", help="Only say what is amiss, and exit with 1 if anything.")
    ] = False,
    hosts: HostsFile = None,
) -> int:
    """Undo and remove whatever a killed run left behind."""
    if hosts is not None:
        return _heal_hosts(hostsfile.read(hosts), check)
    with claimed(screen.say) as (cluster, claim):
        nodes = cluster.look()
        if check:
            return _check(cluster, nodes, claim.keep)
        if not nodes:
            # A network or a stopped node may be there without a running one.
            cluster.down()
            screen.CONSOLE.print("No node is up; nothing is left behind.")
        elif claim.keep:
            found = heal_nodes(cluster, nodes)
            screen.CONSOLE.print("\n".join(found) or "The cluster is up, and nothing is amiss.")
        else:
            cluster.down()
            screen.CONSOLE.print(f"Removed {len(nodes)} nodes that a run had left behind.")
    return 0


def _heal_hosts(hosts: hostsfile.Hosts, check: bool) -> int:
    if check:
        raise BadArguments("--check is about containers: leave it out with --hosts")
    with claimed_hosts(hosts) as cluster:
        nodes = cluster.look()
        cluster.down()
    screen.CONSOLE.print(f"{len(nodes)} hosts have nothing of a run any more.")
    return 0


def _check(cluster: Cluster, nodes: list[str], kept: bool) -> int:
    found = amiss(cluster, nodes) if kept else [f"{node}: a run left it up" for node in nodes]
    screen.CONSOLE.print("\n".join(found) or "Nothing is left behind, and nothing is amiss.")
    return 1 if found else 0


@cluster_app.command("up")
def cluster_up(
    nodes: Annotated[
        list[str] | None, typer.Argument(help="Nodes or kinds (redis, client); all by default.")
    ] = None,
) -> int:
    """Bring nodes up, and leave them up until `cluster down`."""
    wanted = _expand(nodes or [])
    with session(wanted, screen.say, leave_up=True) as cluster:
        servers = _servers(cluster, wanted)
        # All at one time: while the members of a cluster come in, one may go out once more.
        while True:
            for server in servers:
                server.wait_ready(60)
            if all(server.ready() for server in servers):
                break
    screen.CONSOLE.print(f"{len(wanted)} nodes are up and healthy.")
    return 0


@cluster_app.command("down")
def cluster_down() -> int:
    """Remove every node and the network."""
    with claimed(screen.say) as (cluster, claim):
        cluster.down()
        claim.set_keep(False)
    screen.CONSOLE.print("The cluster is down.")
    return 0


@cluster_app.command("status")
def cluster_status() -> int:
    """Which nodes are up, and whether they serve; 0 if all that are up do."""
    with claimed(screen.say) as (cluster, _):
        nodes = cluster.look()
        bad = 0
        for node in sorted(nodes):
            kind = KINDS.get(role(node))
            healthy = kind is None or Server(cluster.remote(node), kind, {}).ready()
            bad += not healthy
            screen.CONSOLE.print(
                f"{node:12} {cluster.address(node):15} {'healthy' if healthy else 'NOT HEALTHY'}"
            )
        if not nodes:
            screen.CONSOLE.print("No node is up.")
    return 1 if bad else 0


@cluster_app.command("build")
def cluster_build() -> int:
    """Provide the engine and the nodes' image, and start nothing."""
    with claimed(screen.say):
        name = image.ensure(screen.say, whole=True)
        screen.CONSOLE.print(
            "The engine answers and the nodes' image is there, with the libraries "
            f"{', '.join(sorted(image.held(name)))}."
        )
    return 0


def _expand(given: list[str]) -> list[str]:
    kinds = (*KINDS, "client", "storage")
    for name in given:
        if name not in NODES and name not in kinds:
            raise BadArguments(
                f"there is no node or kind {name!r}; choose from: {', '.join((*kinds, *NODES))}"
            )
    if not given:
        return list(NODES)
    return [n for n in NODES if n in given or (n.rpartition("-")[0] or n) in given]


def _servers(cluster: Cluster, nodes: list[str]) -> list[Server]:
    return [
        Server(cluster.remote(node), KINDS[role(node)], {}) for node in nodes if role(node) in KINDS
    ]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lincheck() -> int:
    """Check histories for linearizability against a model: `fencepost lincheck --help`."""
    raise BadArguments("call it as `fencepost lincheck FILE... --model M`")
