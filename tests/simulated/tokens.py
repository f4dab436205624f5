"""How the service numbers its grants: soundly, or with one of the defects of tokens."""

from __future__ import annotations

from tests.simulated.cluster import Cluster
from tests.simulated.defects import Defect
from tests.simulated.state import LockState, Rules
from tests.simulated.world import MS, World


class Tokens:
    def __init__(self, world: World, cluster: Cluster, rules: Rules, defect: Defect) -> None:
        self._world = world
        self._cluster = cluster
        self._rules = rules
        self._defect = defect

    def next(self, state: LockState, shared: bool) -> int | None:
        """Return the token of a grant."""
        if self._rules.tokens == "none":
            return None
        together = [holder.token for holder in state.holders if holder.shared]
        if shared and together and self._rules.tokens == "shared":
            return together[-1]
        wrong = self._wrong(state)
        if wrong is not None:
            return wrong
        state.granted = True
        state.token += 1 + (self._world.random.random() < 0.2)
        return state.token

    def _wrong(self, state: LockState) -> int | None:
        strikes, random = self._defect.strikes, self._world.random
        if state.granted and strikes("repeats_token"):
            return state.token - random.randrange(3)
        if strikes("random_token"):
            return random.randrange(1 << 40)
        if strikes("constant_token"):
            return 1
        if strikes("clock_token"):
            leader = next(iter(self._cluster.servers.values()))
            return (self._world.now + leader.offset) // MS
        return None
