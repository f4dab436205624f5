"""The model of the API server: versions, conflicts, invalid objects, and HTTP."""

from __future__ import annotations

import json

import pytest

from fencepost.hunt.models.http_session import Session
from fencepost.hunt.models.kubernetes.state import State
from fencepost.hunt.models.kubernetes.times import parse_micro
from fencepost.hunt.sim.unknown import Unknown

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


class Api:
    def __init__(self):
        self.state = State()

    def __call__(self, method, path, body=None, media="application/json", query=""):
        content = b"" if body is None else json.dumps(body).encode()
        status, answer = self.state.answer(method, path, query, media, content, 10**18)
        return status, json.loads(answer)


@pytest.fixture
def api():
    return Api()


def lease(holder="a", **meta):
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 2}
    return {"metadata": {"name": "x", **meta}, "spec": spec}


def test_a_created_object_can_be_read_with_the_servers_fields(api):
    status, made = api("POST", LEASES, lease())
    assert status == 201
    assert api("GET", f"{LEASES}/x") == (200, made)
    meta = made["metadata"]
    assert (meta["namespace"], meta["creationTimestamp"]) == ("default", "2001-09-09T01:46:40Z")
    assert int(meta["resourceVersion"]) > 0 and meta["uid"]
    assert (made["kind"], made["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")


def test_a_missing_object_is_a_status_with_404(api):
    status, answer = api("GET", f"{LEASES}/x")
    assert (status, answer["kind"], answer["code"], answer["reason"]) == (
        404, "Status", 404, "NotFound",
    )  # fmt: skip
    assert answer["message"] == 'leases.coordination.k8s.io "x" not found'
    assert api("PUT", f"{MAPS}/x", {"metadata": {"name": "x"}})[0] == 404
    assert api("DELETE", f"{LEASES}/x")[0] == 404


def test_only_one_of_two_creates_succeeds(api):
    assert api("POST", LEASES, lease("a"))[0] == 201
    status, answer = api("POST", LEASES, lease("b"))
    assert (status, answer["reason"]) == (409, "AlreadyExists")
    assert api("GET", f"{LEASES}/x")[1]["spec"]["holderIdentity"] == "a"


def test_of_two_writers_that_read_one_version_the_second_is_refused(api):
    api("POST", LEASES, lease())
    _, one = api("GET", f"{LEASES}/x")
    _, other = api("GET", f"{LEASES}/x")
    one["spec"]["holderIdentity"], other["spec"]["holderIdentity"] = "b", "c"
    status, stored = api("PUT", f"{LEASES}/x", one)
    assert status == 200
    assert int(stored["metadata"]["resourceVersion"]) > int(one["metadata"]["resourceVersion"])
    status, answer = api("PUT", f"{LEASES}/x", other)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert api("GET", f"{LEASES}/x")[1]["spec"]["holderIdentity"] == "b"


def test_a_lease_is_replaced_with_a_version_only_and_a_config_map_without_one_too(api):
    api("POST", LEASES, lease())
    status, answer = api("PUT", f"{LEASES}/x", lease("b"))
    assert (status, answer["reason"]) == (422, "Invalid")
    assert "must be specified for an update" in answer["message"]
    api("POST", MAPS, {"metadata": {"name": "x"}})
    assert api("PUT", f"{MAPS}/x", {"metadata": {"name": "x"}, "data": {"a": "1"}})[0] == 200
    assert api("GET", f"{MAPS}/x")[1]["data"] == {"a": "1"}


def test_a_write_that_changes_nothing_gives_no_new_version(api):
    _, made = api("POST", LEASES, lease())
    assert api("PUT", f"{LEASES}/x", made) == (200, made)


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"leaseDurationSeconds": 0}, 422),
        ({"leaseTransitions": -1}, 422),
        ({"leaseDurationSeconds": "2"}, 400),
        ({"renewTime": "yesterday"}, 400),
        ({"renewTime": "2026-01-01T00:00:00Z"}, 400),
    ],
)
def test_invalid_fields_of_a_lease_are_refused(api, spec, status):
    assert api("POST", LEASES, {"metadata": {"name": "x"}, "spec": spec})[0] == status
    assert api("GET", f"{LEASES}/x")[0] == 404


@pytest.mark.parametrize("name", ["", "Upper", "under_score", "-begins"])
def test_invalid_names_are_refused(api, name):
    assert api("POST", LEASES, {"metadata": {"name": name}, "spec": {}})[0] == 422


def test_a_merge_patch_changes_what_it_names_and_removes_what_is_null(api):
    api("POST", MAPS, {"metadata": {"name": "x", "annotations": {"a": "1", "b": "2"}}})
    patch = {"metadata": {"annotations": {"a": None, "c": "3"}}}
    status, made = api("PATCH", f"{MAPS}/x", patch, MERGE)
    assert (status, made["metadata"]["annotations"]) == (200, {"b": "2", "c": "3"})
    stale = {"metadata": {"resourceVersion": "1"}, "data": {}}
    assert api("PATCH", f"{MAPS}/x", stale, MERGE)[0] == 409


def test_a_list_has_the_objects_of_its_namespace_and_a_deleted_one_is_gone(api):
    api("POST", MAPS, {"metadata": {"name": "b"}})
    api("POST", MAPS, {"metadata": {"name": "a"}})
    api("POST", MAPS.replace("default", "kube-public"), {"metadata": {"name": "c"}})
    _, found = api("GET", MAPS)
    assert [one["metadata"]["name"] for one in found["items"]] == ["a", "b"]
    assert api("DELETE", f"{MAPS}/a")[0] == 200
    assert [one["metadata"]["name"] for one in api("GET", MAPS)[1]["items"]] == ["b"]


@pytest.mark.parametrize(
    "asked",
    [
        ("GET", "/api/v1/namespaces/default/pods"),
        ("GET", "/version"),
        ("PATCH", f"{MAPS}/x", {}, "application/apply-patch+yaml"),
        ("DELETE", MAPS),
    ],
)
def test_what_the_model_lacks_is_named(api, asked):
    with pytest.raises(Unknown, match="the model of Kubernetes has no"):
        api(*asked)


def test_a_watch_is_not_modelled(api):
    with pytest.raises(Unknown, match="watch=true"):
        api("GET", LEASES, query="watch=true")


def test_times_are_written_in_utc_with_six_digits():
    assert parse_micro("2026-08-29T06:32:03.456789+05:30") == "2026-08-29T01:02:03.456789Z"


REQUEST = (
    b"PUT /api/v1/namespaces/d/configmaps/x?pretty=true HTTP/1.1\r\nHost: k\r\n"
    b"Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}"
)
COMMAND = ("PUT", "/api/v1/namespaces/d/configmaps/x", "pretty=true", "application/json", b"{}")


@pytest.mark.parametrize("cut", range(len(REQUEST)))
def test_a_request_is_decoded_however_it_is_cut(cut):
    session = Session("Kubernetes")
    first, second = session.commands(REQUEST[:cut]), session.commands(REQUEST[cut:])
    assert first + second == [COMMAND]


def test_requests_follow_one_another_on_a_connection():
    assert Session("Kubernetes").commands(REQUEST * 3) == [COMMAND] * 3


def test_an_answer_is_http_with_its_length():
    assert Session("Kubernetes").encoded(COMMAND, (404, b"{}")) == (
        b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
