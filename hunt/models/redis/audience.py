"""Those who hear of changes at a Redis server: subscribers, and transactions that watch keys."""

from __future__ import annotations

from fencepost.hunt.models.redis.cycle import Cycle
from fencepost.hunt.models.redis.host import Host
from fencepost.hunt.models.redis.notices import Notices
from fencepost.hunt.models.redis.pubsub import PubSub, Subscriber
from fencepost.hunt.models.redis.store import Store
from fencepost.hunt.models.redis.watched import Watched


class Audience:
    """`notices` are set with CONFIG, and outlast no crash."""

    def __init__(self, server: Host) -> None:
        self.pubsub = PubSub()
        self.watched = Watched()
        self.notices = Notices()
        self._server = server
        self._cycle = Cycle(server, server.world, server.sweep)

    @property
    def hears(self) -> bool:
        return bool(self.notices) or bool(self.watched)

    def changed(self, kind: str, event: str, key: str, touches: bool) -> None:
        """Tell of a change of a key (Store.signal, Store.tell)."""
        if touches:
            self.watched.touch(key, key in self._server.store.values)
        if self.notices:
            self.notices.tell(kind, event, key, self.pubsub.publish)
            if event == "expire":
                self.look_in_time()

    def replaced(self, old: Store, new: Store) -> None:
        """Tell of the changes that a replica takes from its primary."""
        if self.watched:
            for key in {**old.values, **new.values}:
                if old.values.get(key) != new.values.get(key):
                    self.watched.touch(key, key in new.values)

    def leave(self, who: Subscriber) -> None:
        """Forget a connection, which is closed."""
        self.pubsub.leave(who)
        self.watched.leave(who)
        self._server.listen()

    def crash(self) -> None:
        self.pubsub, self.watched, self.notices = PubSub(), Watched(), Notices()
        self._cycle.stop()

    def forget(self) -> None:
        """Drop all references to the run, which has ended."""
        self.crash()
        self._cycle.forget()
        del self._server

    # Expiry that clients may hear of happens in its cycle, and not when it is looked for.

    def look_soon(self) -> None:
        """Look for expired keys in the next cycle, because the clock is about to change."""
        if self.notices.of_expiry:
            self._cycle.check_from(self._server.world.now + 1)

    def look_in_time(self) -> None:
        """Look for expired keys in the cycle in which the first one has expired."""
        expires = self._server.store.expires
        if self.notices.of_expiry and expires:
            self._cycle.check_past(min(expires.values()))
