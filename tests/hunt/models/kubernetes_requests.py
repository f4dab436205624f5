"""Random requests of several clients to an API server, and its answers in a comparable form.

A request names versions and uids by what its client saw last, so that one list of requests can be
sent to a real API server and to the model. Answers are compared but for times, uids and the numbers
of resourceVersions: these get a name at their first sight, and must rise. The answer to a watch is
the list of its events.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import urlencode

Asked = dict[str, Any]
"""A request: client, method, path, query, media, and body: a text, or an object with references."""
Answer = tuple[int, Any]
Send = Callable[[str, str, str, str, bytes], tuple[int, bytes]]
"""Sends a method, path, query, media type and body; returns the status and the answer's body."""
Watch = Callable[[str, str, int | None], list[bytes]]
"""Begins a watch at a path with a query; returns its events: this many, or all until its end."""
WATCH = "WATCH"
"""The method of a watch in a request."""

CLIENTS = 3
GROUPS = {
    "leases": ("/apis/coordination.k8s.io/v1", "coordination.k8s.io/v1", "Lease"),
    "configmaps": ("/api/v1", "v1", "ConfigMap"),
    "endpoints": ("/api/v1", "v1", "Endpoints"),
}
NAMESPACES = ("kube-public", "kube-public", "kube-node-lease")
NAMES = ("a", "b", "c", "d.e-f")
BAD_NAMES = ("Upper", "under_score", "-begins", "ends-", "a..b", "x" * 254, "")
JSON = "application/json"
MERGE, STRATEGIC, PATCH = (
    f"application/{kind}-patch+json" for kind in ("merge", "strategic-merge", "json")
)
TIMES = (
    "2026-01-01T00:00:00.000000Z",
    "2026-01-01T00:00:00.123456Z",
    "2026-01-01T02:00:00.500000+02:00",
)
BAD_TIMES = ("yesterday", "2026-01-01T00:00:00Z", "", 7, "2026-13-01T00:00:00.000000Z")
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION = re.compile(
    r"(ResourceVersion in (?:the )?(?:precondition|object meta|record):? \(?)(\d+)"
)
_TOO_OLD = re.compile(r"(too old resource version: )(\d+) \(\d+\)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_WORDS_OF_GO = re.compile(
    r"cannot be handled as a|^invalid character|cannot unmarshal|unable to unmarshal|"
    r"^json: |^unexpected end|couldn't get version/kind|unexpected EOF|^yaml: |"
    r"^Invalid (value|JSON)|invalid JSON document|^error decoding patch|^jsonpatch |missing value|"
    r"object provided is unrecognized|"
    r"\"\" is invalid: patch: Invalid value"
)


class Requests:
    """Draws requests, more often valid than invalid."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def draw(self) -> Asked:
        random = self._random
        plural = random.choice(("leases", "leases", "configmaps", "configmaps", "endpoints"))
        base, _, _ = GROUPS[plural]
        space = "nowhere" if random.random() < 0.01 else random.choice(NAMESPACES)
        every = f"{base}/namespaces/{space}/{plural}"
        name = random.choice(NAMES)
        one = f"{every}/{name}"
        verb = random.choice(
            ("get", "get", "list", "create", "create", "put", "put", "put", "patch", "patch",
             "delete", "watch", "strange")
        )  # fmt: skip
        asked = getattr(self, f"_{verb}")(plural, space, every, one, name)
        return {"client": random.randrange(CLIENTS), "query": self._query(), "media": JSON} | asked

    def _query(self) -> str:
        queries = ("pretty=true", "fieldManager=me", "dryRun=All", "timeout=5s", "pretty=0")
        return self._random.choice(queries) if self._random.random() < 0.06 else ""

    def _get(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        return {"method": "GET", "path": one, "body": ""}

    def _list(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        queries = ("labelSelector=a%3D1", f"fieldSelector=metadata.name%3D{name}", "limit=1",
                   "resourceVersion=0", "watch=true", "labelSelector=a")  # fmt: skip
        query = self._random.choice(queries) if self._random.random() < 0.2 else ""
        return {"method": "GET", "path": every, "body": "", "query": query}

    def _create(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        body = self._object(plural, name, space)
        return {"method": "POST", "path": every, "body": self._spoiled(body)}

    def _put(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        random = self._random
        if random.random() < 0.7:
            body: Any = {"$seen": one, "set": self._fields(plural)}
            if random.random() < 0.2:
                body = {"$seen": one, "set": {}}
            if random.random() < 0.1:
                body["drop"] = random.choice(("resourceVersion", "uid", "name", "namespace"))
        else:
            body = self._object(plural, name, space)
            body["metadata"] |= random.choice(
                ({}, {"resourceVersion": {"$rv": one}}, {"resourceVersion": "1"},
                 {"resourceVersion": "x"}, {"resourceVersion": "0"}, {"uid": {"$uid": one}},
                 {"uid": "other"}, {"name": random.choice(NAMES)},
                 {"resourceVersion": {"$rv": one}, "uid": "other"})
            )  # fmt: skip
        return {"method": "PUT", "path": one, "body": self._spoiled(body)}

    def _patch(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        random = self._random
        media = random.choice((MERGE, MERGE, STRATEGIC, PATCH, PATCH))
        if random.random() < 0.02:
            media = random.choice((JSON, "text/plain", "application/apply-patch+yaml"))
        body: Any = self._operations(plural, one) if media == PATCH else self._merge(plural, one)
        return {"method": "PATCH", "path": one, "media": media, "body": self._spoiled(body, 0.03)}

    def _merge(self, plural: str, one: str) -> Asked:
        random = self._random
        patch = self._fields(plural)
        if random.random() < 0.2:
            patch = dict.fromkeys(patch)
        if random.random() < 0.6:
            patch["metadata"] = random.choice(
                ({"annotations": {"a": random.choice(("1", None)), "b": "2"}},
                 {"annotations": None},
                 {"labels": {"a": "1"}}, {"labels": {"a": "no good"}}, {"labels": {"a": 1}},
                 {"resourceVersion": {"$rv": one}}, {"resourceVersion": "1"},
                 {"resourceVersion": None}, {"uid": "other"}, {"uid": {"$uid": one}},
                 {"name": "z"}, {"namespace": "z"}, {"creationTimestamp": None})
            )  # fmt: skip
        return patch

    def _operations(self, plural: str, one: str) -> list[Any]:
        random = self._random
        field = {"leases": "spec", "configmaps": "data", "endpoints": "subsets"}[plural]
        values = self._fields(plural).get(field)
        every = (
            {"op": "add", "path": f"/{field}", "value": values},
            {"op": "replace", "path": f"/{field}", "value": values},
            {"op": "remove", "path": f"/{field}"},
            {"op": "add", "path": "/metadata/annotations", "value": {"a": "1", "x/y": "2"}},
            {"op": "add", "path": "/metadata/annotations/a", "value": "3"},
            {"op": "replace", "path": "/metadata/annotations/x~1y", "value": "4"},
            {"op": "remove", "path": "/metadata/annotations/a"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": {"$rv": one}},
            {"op": "test", "path": "/metadata/annotations/a", "value": "1"},
            {"op": "test", "path": "/metadata/name", "value": "a"},
            {"op": "copy", "from": "/metadata/annotations/a", "path": "/metadata/annotations/b"},
            {"op": "move", "from": "/metadata/annotations/a", "path": "/metadata/annotations/b"},
            {"op": "bogus", "path": "/metadata"},
            {"op": "add"},
        )
        return random.sample(every, random.choice((0, 1, 1, 1, 2, 3)))

    def _delete(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        random = self._random
        chosen: Any = ""
        if random.random() < 0.4:
            chosen = random.choice(
                ({}, {"preconditions": {"uid": {"$uid": one}}},
                 {"preconditions": {"resourceVersion": {"$rv": one}}},
                 {"preconditions": {"resourceVersion": "1"}}, {"preconditions": {"uid": "other"}},
                 {"preconditions": {"uid": "other", "resourceVersion": "1"}},
                 {"gracePeriodSeconds": 0}, {"propagationPolicy": "Background"},
                 {"propagationPolicy": "Bogus"}, {"kind": "DeleteOptions", "apiVersion": "v1"},
                 {"dryRun": ["All"]}, "{", "[]", {"kind": "Lease"})
            )  # fmt: skip
        return {"method": "DELETE", "path": one, "body": chosen}

    def _watch(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        random = self._random
        query: Asked = {"watch": "true"}
        if random.random() < 0.8:
            query["resourceVersion"] = random.choice(({"$rv": one}, {"$rv": one}, "", "0"))
        if random.random() < 0.4:
            query["fieldSelector"] = f"metadata.name={name}"
        if random.random() < 0.05:
            query["timeoutSeconds"] = "1"
        elif random.random() < 0.02:
            query |= {"timeoutSeconds": "3", "allowWatchBookmarks": "true"}
        return {"method": WATCH, "path": every, "body": "", "query": query}

    def _strange(self, plural: str, space: str, every: str, one: str, name: str) -> Asked:
        found = (
            ("POST", one), ("PUT", every), ("PATCH", every), ("DELETE", every),
            ("GET", f"{one}/status"),
            ("GET", every.replace(plural, "nothings")), ("GET", one.replace("v1", "v9")),
            ("OPTIONS", one), ("GET", every + "/Upper"), ("DELETE", every + "/missing"),
            ("PUT", every + "/missing"), ("PATCH", every + "/missing"),
            ("GET", every.replace(f"namespaces/{space}/", "")), ("HEAD", one),
        )  # fmt: skip
        method, path = self._random.choice(found)
        body = self._object(plural, name, space) if method in ("POST", "PUT", "PATCH") else ""
        return {"method": method, "path": path, "body": body, "query": ""}

    def _object(self, plural: str, name: str, space: str) -> Asked:
        random = self._random
        _, version, kind = GROUPS[plural]
        meta: Asked = {"name": name}
        body = {"apiVersion": version, "kind": kind, "metadata": meta, **self._fields(plural)}
        if random.random() < 0.3:
            meta["namespace"] = space
        if random.random() < 0.1:
            meta["annotations"] = random.choice(({"a": "1"}, {"a": 1}, {}, None, {"bad key": "1"}))
        if random.random() < 0.1:
            meta["labels"] = random.choice(({"a": "1"}, {"a": "no good"}, {}, None, {"-": "1"}))
        return body

    def _fields(self, plural: str) -> Asked:
        random = self._random
        if plural == "leases":
            return {"spec": self._spec()} if random.random() < 0.95 else {}
        if plural == "configmaps":
            return self._data()
        if random.random() < 0.5:
            return {}
        return {"subsets": random.choice(([], None, [{"addresses": [{"ip": "10.0.0.1"}],
                "ports": [{"port": 80}]}]))}  # fmt: skip

    def _spec(self) -> Asked:
        random = self._random
        good: Asked = {
            "holderIdentity": random.choice(("a", "b", "c", "", "é")),
            "leaseDurationSeconds": random.choice((1, 2, 15)),
            "acquireTime": random.choice(TIMES), "renewTime": random.choice(TIMES),
            "leaseTransitions": random.choice((0, 1, 2)),
        }  # fmt: skip
        bad: Asked = {
            "holderIdentity": random.choice((None, 7, [])),
            "leaseDurationSeconds": random.choice((0, -1, "2", 1.5, None, 1 << 40)),
            "acquireTime": random.choice((None, *BAD_TIMES)), "renewTime": random.choice(BAD_TIMES),
            "leaseTransitions": random.choice((-1, "1", None)), "strange": 1,
        }  # fmt: skip
        spec = {key: value for key, value in good.items() if random.random() < 0.8}
        for key in random.sample(list(bad), random.choice((0, 0, 0, 0, 0, 0, 0, 1, 1, 2))):
            spec[key] = bad[key]
        return spec

    def _data(self) -> Asked:
        random = self._random
        if random.random() < 0.85:
            return {
                "data": {key: random.choice("xyz") for key in ("k", "l") if random.random() < 0.7}
            }
        return random.choice(
            ({}, {"data": None}, {"data": {"k": 1}}, {"data": {"bad key": "x"}}, {"data": []},
             {"binaryData": {"n": "eHg="}}, {"binaryData": {"k": "eHg="}, "data": {"k": "x"}},
             {"binaryData": {"k": "***"}}, {"data": {"": "x"}}, {"data": {"..": "x"}},
             {"strange": 1})
        )  # fmt: skip

    def _spoiled(self, body: Any, often: float = 0.06) -> Any:
        """Return the body, or sometimes a malformed one."""
        random = self._random
        if random.random() >= often:
            return body
        if isinstance(body, dict) and "$seen" not in body and random.random() < 0.6:
            return body | random.choice(
                ({"kind": "Pod"}, {"apiVersion": "v7"}, {"kind": None}, {"metadata": None},
                 {"metadata": []}, {"metadata": {"generateName": "g-"}}, {"metadata": {}},
                 {"metadata": {"name": random.choice(BAD_NAMES)}}, {"apiVersion": ""},
                 {"metadata": {"name": 7}}, {"metadata": {"name": "a", "namespace": "z"}},
                 {"metadata": {"name": "a", "resourceVersion": "1"}}, {"kind": ""},
                 {"metadata": {"name": "a", "strange": 1}}, {"spec": 1})
            )  # fmt: skip
        return random.choice(("", "{", "[]", "null", "7", '"x"', "{}", "\x00", "{'a': 1}"))


class Side:
    """One API server as its clients see it: sends requests, and names uids and versions."""

    def __init__(self, send: Send, watch: Watch) -> None:
        self._send = send
        self._watch = watch
        self._seen: dict[tuple[int, str], Asked] = {}
        self._names: dict[str, str] = {}
        self._highest = 0

    def ask(self, asked: Asked, expected: int = 0) -> Answer:
        """Return the status and the comparable body of the answer. `expected`: how many events are
        read of a watch without an end."""
        client, body = asked["client"], asked["body"]
        if asked["method"] == WATCH:
            query = self._resolved(client, asked["query"])
            count = None if "timeoutSeconds" in query else expected
            found = self._watch(asked["path"], urlencode(query), count)
            return 200, self.events(found)
        if not isinstance(body, str):
            body = json.dumps(self._resolved(client, body))
        media = asked["media"] if body else ""
        status, content = self._send(
            asked["method"], asked["path"], asked["query"], media, body.encode()
        )
        try:
            found = json.loads(content)
        except ValueError:
            return status, content.decode(errors="replace").strip()
        if status in (200, 201) and isinstance(found, dict) and "dryRun" not in asked["query"]:
            self._remember(client, asked["path"], found)
        return status, self._comparable(found)

    def events(self, lines: list[bytes]) -> list[Any]:
        """Return comparable events. The versions rise, but for those of the objects with which a
        watch begins: they come in any order."""
        found, last, present = [], 0, True
        for line in lines:
            event = json.loads(line)
            meta = event["object"]["metadata"]
            version = int(meta.get("resourceVersion", 0))
            present = present and event["type"] == "ADDED"
            rises = version >= last if event["type"] == "BOOKMARK" else version > last
            assert event["type"] == "ERROR" or present or rises, (version, last)
            last = max(last, version)
            same = self._comparable(
                {**event["object"], "metadata": {**meta, "resourceVersion": ""}}
            )
            # A client does not see the version of a deletion otherwise.
            same["metadata"]["resourceVersion"] = self._names.get(f"rv {version}", "unseen")
            found.append([event["type"], same])
        begins = next((n for n, one in enumerate(found) if one[0] != "ADDED"), len(found))
        return sorted(found[:begins], key=str) + found[begins:]

    def _remember(self, client: int, path: str, found: Asked) -> None:
        for one in found.get("items", [found]):
            name = one.get("metadata", {}).get("name")
            if name is None:
                continue
            end = path.rpartition("/")[2]
            own = path if end == name else f"{path}/{name}"
            self._seen[client, own] = copy.deepcopy(one)

    def _resolved(self, client: int, body: Any) -> Any:
        """Replace references by the fields that the client saw last."""
        if isinstance(body, list):
            return [self._resolved(client, one) for one in body]
        if not isinstance(body, dict):
            return body
        for mark, field in (("$rv", "resourceVersion"), ("$uid", "uid")):
            if mark in body:
                meta = self._seen.get((client, body[mark]), {}).get("metadata", {})
                return meta.get(field, "999999999")
        if "$seen" in body:
            name = body["$seen"].rpartition("/")[2]
            found = copy.deepcopy(
                self._seen.get((client, body["$seen"]), {"metadata": {"name": name}})
            )
            found |= body["set"]
            found["metadata"].pop(body.get("drop"), None)
            return found
        return {key: self._resolved(client, one) for key, one in body.items()}

    def _comparable(self, found: Any) -> Any:
        if isinstance(found, list):
            return [self._comparable(one) for one in found]
        if isinstance(found, str):
            text = _UID.sub(lambda uid: self._name("uid", uid[0]), found)
            text = _TOO_OLD.sub(lambda one: one[1] + self._names.get(f"rv {one[2]}", "?"), text)
            return _VERSION.sub(lambda one: one[1] + self._names.get(f"rv {one[2]}", one[2]), text)
        if not isinstance(found, dict):
            return found
        same = {key: self._comparable(one) for key, one in found.items() if key != "managedFields"}
        if _WORDS_OF_GO.search(str(found.get("message"))) and found.get("code") in (400, 422, 500):
            same["message"] = "the words of a decoder of Go"
            same.pop("details", None)
        meta = found.get("metadata")
        if isinstance(meta, dict):
            self._versions(meta, same["metadata"], is_list="items" in found)
        return same

    def _versions(self, meta: Asked, same: Asked, is_list: bool) -> None:
        if version := meta.get("resourceVersion"):
            if is_list:
                assert int(version) >= self._highest, (version, self._highest)
                same["resourceVersion"] = "of the list"
            else:
                same["resourceVersion"] = self._name("rv", version)
        if stamp := meta.get("creationTimestamp"):
            assert _STAMP.fullmatch(stamp), stamp
            same["creationTimestamp"] = "a time"

    def _name(self, sort: str, value: str) -> str:
        known = self._names.get(f"{sort} {value}")
        if known is not None:
            return known
        if sort == "rv":
            assert int(value) > self._highest, f"resourceVersion {value} after {self._highest}"
            self._highest = int(value)
        count = sum(name.startswith(sort) for name in self._names.values())
        return self._names.setdefault(f"{sort} {value}", f"{sort}-{count + 1}")
