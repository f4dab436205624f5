"""The lock on NATS' buckets of keys, on a bucket in memory with revisions and an age."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.locks import nats
from fencepost.workloads.transport import nats_bucket

TTL = 2_000_000_000


class Error(Exception):
    pass


class NoAnswer(Error):
    pass


class ApiError(Error):
    def __init__(self, code=0):
        super().__init__(code)
        self.err_code = code


class OtherRevision(ApiError):
    pass


class NotFound(ApiError):
    pass


class Bucket:
    """A bucket in memory. `lost`: how many answers are lost, after their writes."""

    def __init__(self, world):
        self.world = world
        self.keys = {}
        self.count = 0
        self.lost = 0
        self.config = None

    def _write(self, key, value, last):
        written = self.keys.get(key, (0, b"", 0))
        current = written[0] if self.world.now - written[2] < TTL else 0
        if current != last:
            raise ApiError(10071)
        self.count += 1
        self.keys[key] = (self.count, value, self.world.now)
        if self.lost:
            self.lost -= 1
            raise NoAnswer("timeout")
        return self.count

    async def create(self, key, value):
        try:
            return self._write(key, value, 0)
        except ApiError as error:
            raise OtherRevision from error

    async def update(self, key, value, last):
        return self._write(key, value, last)

    async def delete(self, key, last):
        self._write(key, b"", last)
        del self.keys[key]

    async def get(self, key):
        if key not in self.keys:
            raise NotFound
        revision, value, _ = self.keys[key]
        return SimpleNamespace(revision=revision, value=value)

    # The connection, and the streams.

    def jetstream(self, timeout):
        return self

    async def key_value(self, name):
        if self.config is None:
            raise NotFound
        return self

    async def create_key_value(self, **config):
        self.config = config
        return self

    async def close(self):
        pass


@pytest.fixture
def bucket(world, monkeypatch):
    bucket = Bucket(world)

    async def connect(**given):
        return bucket

    answers = SimpleNamespace(
        APIError=ApiError,
        KeyWrongLastSequenceError=OtherRevision,
        KeyNotFoundError=NotFound,
        BucketNotFoundError=NotFound,
        NoStreamResponseError=type("NoStreamResponseError", (Error,), {}),
    )
    failures = SimpleNamespace(Error=Error, NoServersError=type("No", (Error,), {}))
    monkeypatch.setattr(nats_bucket, "nats", SimpleNamespace(connect=connect))
    monkeypatch.setattr(nats_bucket, "stream_errors", answers)
    monkeypatch.setattr(nats_bucket, "errors", failures)
    return bucket


@pytest.fixture
def lock(world, bucket):
    made = []

    def make(**given):
        options = nats.LOCK.read_options({name: str(value) for name, value in given.items()})
        nodes = ["nats-1", "nats-2", "nats-3"]
        made.append(nats.LOCK.make(world.env(len(made)), nodes, options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_bucket_has_the_ttl_as_its_age_and_a_replica_on_each_server(lock, bucket):
    lock().acquire("orders", TTL)
    assert bucket.config == {"bucket": "fencepost", "ttl": 2.0, "replicas": 3}


def test_the_token_is_the_revision_and_rises_with_each_grant(lock):
    one, two = lock(), lock()
    first = one.acquire("orders", TTL)
    one.release(first)
    second = two.acquire("orders", TTL)
    assert first.token is not None and first.token < second.token


def test_a_key_that_exists_is_not_granted(lock):
    lock().acquire("orders", TTL)
    with pytest.raises(Failed, match="the key existed at 3 tries") as error:
        lock(retries=2).acquire("orders", TTL)
    assert error.value.kind == "not-granted"


def test_a_key_that_is_too_old_is_free_and_its_holder_learns_of_it(lock, world):
    one = lock()
    grant = one.acquire("orders", TTL)
    world.now += TTL
    lock().acquire("orders", TTL)
    with pytest.raises(Failed, match="another revision") as error:
        one.extend(grant, TTL)
    assert error.value.kind == "not-held"
    assert [said[0] for said in world.said] == ["lost"]
    with pytest.raises(Failed) as error:
        one.release(grant)
    assert error.value.kind == "not-held"


def test_an_extension_writes_the_key_again_and_keeps_the_token(lock, world):
    one = lock()
    grant = one.acquire("orders", TTL)
    world.now += TTL // 2
    longer = one.extend(grant, TTL)
    assert (longer.deadline, longer.token) == (world.now + TTL, grant.token)
    world.now += TTL // 2 + 1
    with pytest.raises(Failed):
        lock(retries=0).acquire("orders", TTL)


def test_after_a_lost_answer_a_client_goes_on_with_the_revision_that_has_its_value(lock, bucket):
    one = lock()
    grant = one.acquire("orders", TTL)
    bucket.lost = 1
    with pytest.raises(Indeterminate):
        one.extend(grant, TTL)
    one.extend(grant, TTL)
    one.release(grant)
    assert bucket.keys == {}


def test_a_lost_answer_of_acquire_is_unknown(lock, bucket):
    bucket.lost = 1
    with pytest.raises(Indeterminate):
        lock().acquire("orders", TTL)


def test_a_released_hold_cannot_be_released_again(lock):
    one = lock()
    grant = one.acquire("orders", TTL)
    one.release(grant)
    with pytest.raises(Failed, match="the hold has ended"):
        one.release(grant)


def test_closing_the_client_leaves_the_key(lock, bucket):
    one = lock()
    one.acquire("orders", TTL)
    one.close()
    assert "orders" in bucket.keys
