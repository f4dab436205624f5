"""Watches of the model: their beginnings, their events, and their ends."""

from __future__ import annotations

import json

import pytest

from fencepost.hunt.models.kubernetes.state import State
from fencepost.hunt.models.kubernetes.status import Refusal
from fencepost.hunt.models.kubernetes.watches import Cache, Change, is_watch
from fencepost.hunt.sim.unknown import Unknown

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MAPS = "/api/v1/namespaces/default/configmaps"
S = 10**9


class Api:
    def __init__(self):
        self.state = State()
        self.caches = self.state.started()
        self.now = 0

    def __call__(self, method, path, body=None):
        content = b"" if body is None else json.dumps(body).encode()
        status, answer = self.state.answer(method, path, "", "application/json", content, self.now)
        assert status < 300, answer
        return json.loads(answer)

    def lease(self, name, holder="a", method="POST"):
        body = {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}
        if method == "POST":
            return self("POST", LEASES, body)
        body["metadata"]["resourceVersion"] = self("GET", f"{LEASES}/{name}")["metadata"][
            "resourceVersion"
        ]
        return self("PUT", f"{LEASES}/{name}", body)

    def watch(self, query="", path=LEASES):
        return self.state.watch(path, f"watch=true&{query}", self.caches, self.now)


@pytest.fixture
def api():
    return Api()


def events(watch, now_ns=0):
    """Return the type, the name and the version of each event."""
    found = [json.loads(line) for line in watch.take(now_ns).splitlines()]
    return [
        (one["type"], one["object"]["metadata"].get("name"),
         int(one["object"]["metadata"].get("resourceVersion", 0)))
        for one in found
    ]  # fmt: skip


def version(one):
    return int(one["metadata"]["resourceVersion"])


@pytest.mark.parametrize("query", ["", "resourceVersion=0", "resourceVersion="])
def test_a_watch_without_a_version_begins_with_the_present_objects(api, query):
    first, second = api.lease("x"), api.lease("y")
    watch = api.watch(query)
    assert events(watch) == [("ADDED", "x", version(first)), ("ADDED", "y", version(second))]
    assert events(watch) == []


def test_a_watch_hears_each_change_once_and_in_order(api):
    made = api.lease("x")
    watch = api.watch(f"resourceVersion={version(made)}")
    changed = api.lease("x", "b", "PUT")
    api("DELETE", f"{LEASES}/x")
    again = api.lease("x")
    assert events(watch) == [
        ("MODIFIED", "x", version(changed)),
        ("DELETED", "x", version(changed) + 1),
        ("ADDED", "x", version(again)),
    ]
    assert events(watch) == []


def test_a_watch_begins_after_its_version_and_not_with_it(api):
    first, second = api.lease("x"), api.lease("y")
    assert events(api.watch(f"resourceVersion={version(first)}")) == [
        ("ADDED", "y", version(second))
    ]
    assert events(api.watch(f"resourceVersion={version(second)}")) == []
    later = api.watch(f"resourceVersion={version(second) + 1}")
    api.lease("x", "b", "PUT")
    last = api.lease("y", "b", "PUT")
    assert events(later) == [("MODIFIED", "y", version(last))]


def test_a_deletion_shows_the_last_object_with_the_version_of_the_deletion(api):
    made = api.lease("x", "last")
    watch = api.watch(f"resourceVersion={version(made)}")
    api("DELETE", f"{LEASES}/x")
    [event] = [json.loads(line) for line in watch.take(0).splitlines()]
    made["metadata"]["resourceVersion"] = str(version(made) + 1)
    assert event == {"type": "DELETED", "object": made}


def test_a_write_that_changes_nothing_is_no_event(api):
    made = api.lease("x")
    watch = api.watch(f"resourceVersion={version(made)}")
    api.lease("x", method="PUT")
    assert events(watch) == []


def test_a_watch_hears_only_of_its_kind_its_namespace_and_its_name(api):
    api.lease("y")
    named, every = api.watch("fieldSelector=metadata.name%3Dx"), api.watch()
    elsewhere = api.watch(path=LEASES.replace("default", "kube-system"))
    api("POST", MAPS, {"metadata": {"name": "x"}})
    api.lease("x")
    assert [name for _, name, _ in events(named)] == ["x"]
    assert [name for _, name, _ in events(every)] == ["y", "x"]
    assert events(elsewhere) == []


def test_a_watch_lasts_its_timeout_and_half_an_hour_without_one(api):
    assert api.watch("timeoutSeconds=7").ends_ns == 7 * S
    assert api.watch().ends_ns == api.watch("timeoutSeconds=0").ends_ns == 1800 * S


def test_a_bookmark_names_the_latest_change_of_the_kind_two_seconds_before_the_end(api):
    watch = api.watch("timeoutSeconds=5&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dx")
    assert watch.next_ns == 3 * S
    api.lease("y")
    api("POST", MAPS, {"metadata": {"name": "x"}})
    api("DELETE", f"{LEASES}/y")
    assert events(watch, 3 * S - 1) == []
    [line] = watch.take(3 * S).splitlines()
    assert json.loads(line) == {
        "type": "BOOKMARK",
        "object": {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"resourceVersion": str(api.state.revision), "creationTimestamp": None},
            "spec": {},
        },
    }
    assert watch.next_ns == watch.ends_ns
    assert events(watch, 5 * S) == []


def test_a_bookmark_comes_only_if_the_kind_has_changed_since_the_watch_began(api):
    asked = "timeoutSeconds=5&allowWatchBookmarks=true"
    empty = api.watch(asked)
    assert events(empty, 3 * S) == []
    made = api.lease("x")
    present, known = api.watch(asked), api.watch(f"{asked}&resourceVersion={version(made)}")
    later = api.watch(f"{asked}&resourceVersion=999")
    assert events(present, 3 * S) == [("ADDED", "x", version(made))]
    assert events(known, 3 * S) == events(later, 3 * S) == []
    last = api.lease("y")
    named = f"{asked}&resourceVersion={version(made)}&fieldSelector=metadata.name%3Dx"
    behind = api.watch(named)  # the change of y, which it leaves out, is behind it
    assert events(behind, 3 * S) == []
    behind = api.watch(named)
    api("DELETE", f"{LEASES}/y")
    assert events(behind, 3 * S) == [("BOOKMARK", None, version(last) + 1)]


def test_a_long_watch_has_a_bookmark_each_minute(api):
    watch = api.watch("allowWatchBookmarks=true")
    made = api.lease("x")
    assert events(watch) == [("ADDED", "x", version(made))]
    for minute in (1, 2, 3):
        assert watch.next_ns == minute * 60 * S
        assert events(watch, watch.next_ns) == [("BOOKMARK", None, version(made))]


def test_a_watch_from_before_the_start_of_its_server_is_gone(api):
    first, second = api.lease("x"), api.lease("y")
    api.state.ended(api.caches)
    api.caches = api.state.started()
    watch = api.watch(f"resourceVersion={version(first)}")
    [line] = watch.take(0).splitlines()
    error = json.loads(line)
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    assert error["object"]["reason"] == "Expired"
    assert error["object"]["message"] == (
        f"too old resource version: {version(first)} ({version(second)})"
    )
    assert watch.ends_ns == 0
    assert events(api.watch(f"resourceVersion={version(second)}")) == []


def cache(*moments_s):
    """Return a cache with a change at each of these moments."""
    found = Cache(1)
    for number, moment_s in enumerate(moments_s, 2):
        found.add(Change(number, "default", "x", None, {}), round(moment_s * S))
    return found


def kept(found):
    """Return the least version from which a watch can begin."""
    oldest = 0
    while True:
        try:
            found.since(oldest)
            return oldest
        except Refusal:
            oldest += 1


def test_all_changes_of_the_last_75_s_are_kept_and_at_least_100():
    # One change a second: after 100 of them the first is 100 s old, so that it goes.
    assert kept(cache(*range(100))) == 1
    assert kept(cache(*range(101))) == 2
    assert kept(cache(*range(150))) == 51
    # Ten changes a second: all of the first 75 s are kept, however many they are.
    assert kept(cache(*(number / 10 for number in range(750)))) == 1


def test_the_room_shrinks_when_the_changes_become_rare():
    many = [number / 10 for number in range(150)]
    assert kept(cache(*many, *(15 + 80 * number for number in range(1, 50)))) == 1
    # The 201st change finds room for 200 full of old changes: half of it goes.
    rare = [15 + 80 * number for number in range(1, 52)]
    assert kept(cache(*many, *rare)) == 1 + len(many) + len(rare) - 100


def test_a_closed_watch_hears_nothing(api):
    watch = api.watch()
    watch.close()
    watch.close()
    api.lease("x")
    assert events(watch) == []


@pytest.mark.parametrize(
    "query",
    ["labelSelector=a", "resourceVersion=x", "timeoutSeconds=-1", "timeoutSeconds=x", "limit=1",
     "fieldSelector=spec.holder%3Da", "fieldSelector=metadata.name!%3Da", "watch=maybe",
     "allowWatchBookmarks=maybe"],
)  # fmt: skip
def test_what_the_model_lacks_is_refused_with_the_query(api, query):
    with pytest.raises(Unknown, match="no watch with"):
        api.state.watch(LEASES, query, api.caches, 0)


def test_only_a_list_can_be_watched(api):
    with pytest.raises(Unknown, match="watches lists"):
        api.watch(path=f"{LEASES}/x")


def test_a_request_is_a_watch_if_its_query_says_so():
    assert is_watch("GET", "watch=true") and is_watch("GET", "pretty=false&watch=1")
    assert not is_watch("GET", "watch=false") and not is_watch("GET", "")
    assert not is_watch("POST", "watch=true")
