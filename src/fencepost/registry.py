"""Bundles by name: those of this repository, and those that installed packages bring.

A lock, a fault family, a kind of server, a checker: each is one frozen bundle in one file. The
registry of its kind lists ours, a line each. Any other package adds one by an entry point:

    [project.entry-points."fencepost.locks"]
    my-lock = "my_package.my_lock:LOCK"

Entry points are read when a name is asked for that is not ours, or when all are listed. So a client
on a node, which asks for one of ours, loads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


Bundle = TypeVar("Bundle", bound=Named)


class BadPlugin(Exception):
    """A bundle of an installed package that cannot be used; the text names the package."""


class Registry(Mapping[str, Bundle], Generic[Bundle]):
    """Bundles of one type by name, ours first.

    Raises BadPlugin, when a name is looked up that is not ours or when all are listed, if a package
    brings something that cannot be loaded, is of another type, or has a name that is taken.
    """

    def __init__(self, group: str, type: type[Bundle], ours: Iterable[Bundle]) -> None:
        self.group = group
        self._type = type
        self._ours = {bundle.name: bundle for bundle in ours}
        self._seen: tuple[dict[str, Bundle], list[BadPlugin]] | None = None
        self._points: dict[str, EntryPoint] = {}

    def __getitem__(self, name: str) -> Bundle:
        ours = self._ours.get(name)
        return self._loaded()[name] if ours is None else ours

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())

    def __contains__(self, name: object) -> bool:
        return name in self._ours or name in self._loaded()

    def sound(self) -> tuple[list[Bundle], list[BadPlugin]]:
        """Every bundle that can be used, and why each of the others cannot.

        For what must be done whatever is installed: healing, say.
        """
        found, bad = self._look()
        return list(found.values()), list(bad)

    def point(self, name: str) -> EntryPoint | None:
        """Return the entry point that brings a bundle; None where it is ours."""
        return None if name in self._ours else self._points.get(self[name].name)

    def forget(self) -> None:
        """Read the entry points again when they are next needed."""
        self._seen = None

    def _loaded(self) -> dict[str, Bundle]:
        found, bad = self._look()
        if bad:
            raise bad[0]
        return found

    def _look(self) -> tuple[dict[str, Bundle], list[BadPlugin]]:
        if self._seen is None:
            self._seen = self._read()
        return self._seen

    def _read(self) -> tuple[dict[str, Bundle], list[BadPlugin]]:
        found, bad = dict(self._ours), []
        for point in entry_points(group=self.group):
            try:
                bundle = self._load(point)
            except BadPlugin as error:
                bad.append(error)
                continue
            if bundle.name in found:
                words = f"{_blame(point)}: the name {bundle.name!r} is taken already"
                bad.append(BadPlugin(words))
                continue
            found[bundle.name] = bundle
            self._points[bundle.name] = point
        return found, bad

    def _load(self, point: EntryPoint) -> Bundle:
        try:
            bundle = point.load()
        except Exception as error:  # whatever a stranger's module raises is the stranger's
            raise BadPlugin(
                f"{_blame(point)}: {type(error).__name__}: {error}. Repair or uninstall the package"
            ) from error
        if not isinstance(bundle, self._type):
            raise BadPlugin(
                f"{_blame(point)}: it is a {type(bundle).__name__}, and {self.group} takes a "
                f"{self._type.__name__}"
            )
        return bundle


def _blame(point: EntryPoint) -> str:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    return (
        f"package {package}: entry point {point.name} = {point.value} in group {point.group} "
        "cannot be used"
    )
