"""Registries of bundles by name: built-in ones, and those of installed packages.

A lock, a fault family, a kind of server, a checker: each is one frozen bundle in one file. The
registry of its kind lists the built-in ones, a line each. Any other package adds one by an entry
point:

    [project.entry-points."fencepost.locks"]
    my-lock = "my_package.my_lock:LOCK"

Entry points are read when an unknown name is looked up, or when all are listed. So a client on a
node, which looks up a built-in one, loads nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar, cast


class Named(Protocol):
    @property
    def name(self) -> str: ...


Bundle = TypeVar("Bundle", bound=Named)
Derived = TypeVar("Derived")


class BadPlugin(Exception):
    """A bundle of an installed package is unusable; the text names the package."""


class Registry(Mapping[str, Bundle], Generic[Bundle]):
    """Bundles of one type by name, built-in ones first.

    `check` raises ValueError for an invalid bundle of a package, for example one that uses an
    unknown name. A bundle with an invalid field raises it when it is made.

    Looking up a name that is not built in, or listing all, raises BadPlugin if a package's bundle
    cannot be loaded, is of another type, is invalid, or has a name that is taken.
    """

    def __init__(
        self,
        group: str,
        type: type[Bundle],
        ours: Iterable[Bundle],
        check: Callable[[Bundle], None] = lambda bundle: None,
    ) -> None:
        self.group = group
        self._type = type
        self._check = check
        self._ours = {bundle.name: bundle for bundle in ours}
        self._points: dict[str, EntryPoint] = {}
        self._derived: dict[Callable[[], object], object] = {}

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
        """Return every usable bundle, and why each of the others is not.

        For work that must be done whatever is installed, for example healing.
        """
        found, bad = self._look
        return list(found.values()), list(bad)

    def point(self, name: str) -> EntryPoint | None:
        """Return the entry point of a bundle; None if it is built in."""
        return None if name in self._ours else self._points.get(self[name].name)

    def derived(self, make: Callable[[], Derived]) -> Derived:
        """Return what `make`, a function of a module, makes of the bundles. It is kept until
        `forget`."""
        if make not in self._derived:
            self._derived[make] = make()
        return cast(Derived, self._derived[make])

    def forget(self) -> None:
        """Read the entry points again at the next use."""
        vars(self).pop("_look", None)
        self._derived.clear()

    def _loaded(self) -> dict[str, Bundle]:
        found, bad = self._look
        if bad:
            raise bad[0]
        return found

    @cached_property
    def _look(self) -> tuple[dict[str, Bundle], list[BadPlugin]]:
        found, bad = dict(self._ours), []
        for point in entry_points(group=self.group):
            try:
                bundle = self._load(point)
            except BadPlugin as error:
                bad.append(error)
                continue
            if bundle.name in found:
                words = f"{blame(point)}: the name {bundle.name!r} is taken already"
                bad.append(BadPlugin(words))
                continue
            found[bundle.name] = bundle
            self._points[bundle.name] = point
        return found, bad

    def _load(self, point: EntryPoint) -> Bundle:
        try:
            bundle = point.load()
        except Exception as error:  # the plug-in's module may raise anything
            raise BadPlugin(
                f"{blame(point)}: {type(error).__name__}: {error}. Repair or uninstall the package"
            ) from error
        if not isinstance(bundle, self._type):
            raise BadPlugin(
                f"{blame(point)}: it is a {type(bundle).__name__}, but {self.group} needs a "
                f"{self._type.__name__}"
            )
        try:
            self._check(bundle)
        except ValueError as error:
            raise BadPlugin(f"{blame(point)}: {error}") from error
        return bundle


def blame(point: EntryPoint) -> str:
    """Say which package's entry point cannot be used; what is wrong with it follows."""
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
    return (
        f"package {package}: entry point {point.name} = {point.value} in group {point.group} "
        "cannot be used"
    )
