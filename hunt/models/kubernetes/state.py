"""The objects of the API server by which leaders are elected: Lease, ConfigMap, Endpoints.

It answers get, list, watch, create, replace, patch (RFC 7386, RFC 6902) and delete, as
kube-apiserver 1.20 does (registry/generic/registry/store.go): each write has a new resourceVersion,
and a write that names another one than the stored object's is refused (409). A feature that is not
modelled raises Unknown with its name.

Not modelled: authentication, managedFields, and the words of the decoders of Go, which the server
answers to malformed requests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from fencepost.hunt.models.kubernetes import fields, meta, patches, watches
from fencepost.hunt.models.kubernetes.kinds import KINDS, Kind, Malformed
from fencepost.hunt.models.kubernetes.status import (
    Fault,
    Object,
    Refusal,
    bad_request,
    conflict,
    details,
    encoded,
    invalid,
    not_found,
    unversioned,
)
from fencepost.hunt.models.kubernetes.times import from_ns
from fencepost.hunt.models.kubernetes.watches import Caches, Change, Watch
from fencepost.hunt.sim.unknown import Unknown

Answer = tuple[int, bytes]

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Those that the server makes itself. There are no others."""

_PATH = re.compile(r"(/apis?/[^/]+(?:/[^/]+)?)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?")
_JSON_PATCH = "application/json-patch+json"
_MERGES = ("application/merge-patch+json", "application/strategic-merge-patch+json")
_OTHER_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


class State:
    """The stored objects, and the revision of the store."""

    def __init__(self) -> None:
        self.revision = 1
        self._made = 0
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._caches: list[Caches] = []
        self._now_ns = 0

    def started(self) -> Caches:
        """Return the memory of a new API server."""
        self._caches.append(Caches(self.revision))
        return self._caches[-1]

    def ended(self, caches: Caches) -> None:
        """Forget the memory of an API server."""
        self._caches.remove(caches)

    def watch(self, path: str, query: str, caches: Caches, now_ns: int) -> Watch:
        """Begin a watch at the API server that has these caches. Raises Unknown."""
        kind, namespace, name = _found(path)
        if name:
            raise Unknown("the model of Kubernetes watches lists; name objects by a fieldSelector")
        asked, cache = watches.asked(kind, namespace, query), caches.of(kind.plural)
        present = [
            one for one in self.all(kind, namespace) if asked.name in ("", one["metadata"]["name"])
        ]
        exists = any(plural == kind.plural for plural, _, _ in self._objects)
        return Watch(asked, cache, present, exists, now_ns)

    def answer(
        self, method: str, path: str, query: str, media: str, body: bytes, now_ns: int
    ) -> Answer:
        """Execute a request; `now_ns`: the server's wall clock."""
        kind, namespace, name = _found(path)
        if query and set(query.split("&")) - {"pretty=false", "pretty=0"}:
            raise Unknown(f"the model of Kubernetes has no {method} with {query}")
        target = _Target(self, kind, namespace, name)
        self._now_ns = now_ns
        try:
            status, answer = target.execute(method, media, body, now_ns)
        except Refusal as error:
            return error.code, encoded(error.status())
        return status, encoded(answer)

    def stored(self) -> bytes:
        """Return the state as a file has it."""
        objects = [[*key, made] for key, made in self._objects.items()]
        return encoded({"revision": self.revision, "made": self._made, "objects": objects})

    def restore(self, stored: bytes) -> None:
        """Take the state of a file. Raises ValueError if it is none."""
        found = json.loads(stored)
        self.revision, self._made = found["revision"], found["made"]
        self._objects = {(kind, space, name): made for kind, space, name, made in found["objects"]}

    def get(self, key: tuple[str, str, str]) -> Object | None:
        return self._objects.get(key)

    def all(self, kind: Kind, namespace: str) -> list[Object]:
        """Return the objects of a kind, in order of their names."""
        found = [(key, one) for key, one in self._objects.items()]
        return [one for key, one in sorted(found, key=_key) if key[:2] == (kind.plural, namespace)]

    def put(self, key: tuple[str, str, str], made: Object) -> None:
        self.revision += 1
        made["metadata"]["resourceVersion"] = str(self.revision)
        self._tell(key, self._objects.get(key), made)
        self._objects[key] = made

    def remove(self, key: tuple[str, str, str]) -> None:
        self.revision += 1
        self._tell(key, self._objects.pop(key), None)

    def _tell(self, key: tuple[str, str, str], old: Object | None, new: Object | None) -> None:
        plural, namespace, name = key
        for caches in self._caches:
            change = Change(self.revision, namespace, name, old, new)
            caches.of(plural).add(change, self._now_ns)

    def uid(self) -> str:
        self._made += 1
        return f"00000000-0000-4000-8000-{self._made:012x}"


def _found(path: str) -> tuple[Kind, str, str]:
    """Return the kind, the namespace and the name ("": a list) in a path. Raises Unknown."""
    found = _PATH.fullmatch(path)
    kind = None if found is None else KINDS.get(f"{found[1]}/{found[3]}")
    if found is None or kind is None:
        raise Unknown(f"the model of Kubernetes has no {path}")
    return kind, found[2], found[4] or ""


def _key(pair: tuple[tuple[str, str, str], Object]) -> tuple[str, str, str]:
    return pair[0]


@dataclass(frozen=True)
class _Target:
    """The object, or the list, that a request names."""

    state: State
    kind: Kind
    namespace: str
    name: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind.plural, self.namespace, self.name

    def execute(self, method: str, media: str, body: bytes, now_ns: int) -> tuple[int, Object]:
        match method, bool(self.name):
            case "GET", True:
                return 200, self._stored()
            case "GET", False:
                return 200, self._list()
            case "POST", False:
                return 201, self._create(self._given(body), now_ns)
            case "PUT", True:
                return self._replace(self._given(body), now_ns)
            case "PATCH", True:
                return 200, self._patch(media, body)
            case "DELETE", True:
                return 200, self._delete(body)
        raise Unknown(f"the model of Kubernetes has no {method} of {self.kind.plural}")

    def _stored(self) -> Object:
        found = self.state.get(self.key)
        if found is None:
            raise not_found(self.kind, self.name)
        return found

    def _list(self) -> Object:
        return {
            "kind": f"{self.kind.name}List",
            "apiVersion": self.kind.version,
            "metadata": {"resourceVersion": str(self.state.revision)},
            "items": [
                {field: value for field, value in one.items() if field not in _TYPE}
                for one in self.state.all(self.kind, self.namespace)
            ],
        }

    def _create(self, made: Object, now_ns: int) -> Object:
        given = made["metadata"]
        self._must_have_namespace()
        if given.get("namespace", self.namespace) != self.namespace:
            raise bad_request(_OTHER_NAMESPACE)
        if given.get("generateName"):
            raise Unknown("the model of Kubernetes has no metadata.generateName")
        name = given.get("name", "")
        wrong = [*meta.faults_of_name(name), *meta.faults(given), *fields.faults(self.kind, made)]
        if wrong:
            raise invalid(self.kind, name, wrong)
        if _version(given):
            words = "resourceVersion should not be set on objects to be created"
            raise Refusal(500, "", words)
        key = (self.kind.plural, self.namespace, name)
        if self.state.get(key) is not None:
            words = f'{self.kind.resource} "{name}" already exists'
            raise Refusal(409, "AlreadyExists", words, details(self.kind, name))
        given |= {"namespace": self.namespace, "uid": self.state.uid()}
        given["creationTimestamp"] = from_ns(now_ns, micro=False)
        self.state.put(key, made)
        return made

    def _must_have_namespace(self) -> None:
        if self.namespace not in NAMESPACES:
            words = f'namespaces "{self.namespace}" not found'
            where = {"name": self.namespace, "kind": "namespaces"}
            raise Refusal(404, "NotFound", words, where)

    def _replace(self, made: Object, now_ns: int) -> tuple[int, Object]:
        given = made["metadata"]
        self._must_have_the_name(given)
        stored = self.state.get(self.key)
        uid = "" if stored is None else stored["metadata"]["uid"]
        if given.get("uid", uid) != uid:
            raise conflict(self.kind, self.name, self._other_uid(given["uid"], uid))
        if stored is None:
            if not self.kind.created_by_put:
                raise not_found(self.kind, self.name)
            _version(given)
            given.pop("resourceVersion", None)
            return 201, self._create(made, now_ns)
        return 200, self._stored_as(made, stored)

    def _must_have_the_name(self, given: Object) -> None:
        name, space = given.get("name"), given.get("namespace", self.namespace)
        if name is None:
            words = f"the name of the object ({self.name} based on URL) was undeterminable: "
            raise bad_request(f"{words}name must be provided")
        if name != self.name:
            words = f"the name of the object ({name}) does not match the name on the URL "
            raise bad_request(f"{words}({self.name})")
        if space != self.namespace:
            words = f"the namespace of the object ({space}) does not match the namespace on the "
            raise bad_request(f"{words}request ({self.namespace})")

    def _other_uid(self, wanted: str, uid: str) -> str:
        group = f"{self.kind.group}/" if self.kind.group else ""
        plural = "services/endpoints" if self.kind.plural == "endpoints" else self.kind.plural
        return (
            "StorageError: invalid object, Code: 4, Key: /registry/"
            f"{plural}/{self.namespace}/{self.name}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        ).replace("/registry//", f"/registry/{group}")

    def _patch(self, media: str, body: bytes) -> Object:
        if media not in (*_MERGES, _JSON_PATCH):
            raise Unknown(f"the model of Kubernetes has no patch of the type {media!r}")
        stored = self._stored()
        if media == _MERGES[0] and not _is_json(body):
            raise Refusal(500, "", "Invalid JSON Patch")
        patch = _json(body)
        if media == _JSON_PATCH:
            patch = [] if patch is None else patch
            if not isinstance(patch, list):
                raise bad_request("json: cannot unmarshal the patch")
            try:
                patched = patches.operated(stored, patch)
            except patches.Failed:
                words = "the server rejected our request due to an error in our request"
                raise Refusal(422, "Invalid", words, {}) from None
        else:
            if not isinstance(patch, dict):
                raise Unknown("the model of Kubernetes merges objects only")
            if media != _MERGES[0]:
                patches.must_be_plain(patch)
            patched = patches.merged(stored, patch, strategic=media != _MERGES[0])
        made = self._patched(patched)
        self._must_have_the_name(made["metadata"])
        return self._stored_as(made, stored)

    def _patched(self, patched: Object) -> Object:
        if (patched.get("kind"), patched.get("apiVersion")) != (self.kind.name, self.kind.version):
            raise Unknown("the model of Kubernetes changes no kind and no apiVersion")
        try:
            return self._read(patched)
        except Malformed as error:
            words = f"patch: Invalid value: {error}"
            raise Refusal(422, "Invalid", f' "" is invalid: {words}') from None

    def _stored_as(self, made: Object, stored: Object) -> Object:
        """Store a new version of an object; return it."""
        given, old = made["metadata"], stored["metadata"]
        version = _version(given)
        if not version and not self.kind.unconditional:
            raise unversioned(self.kind, self.name)
        if version and version != int(old["resourceVersion"]):
            raise conflict(self.kind, self.name)
        given["namespace"] = self.namespace
        given.setdefault("uid", old["uid"])
        given["creationTimestamp"] = old["creationTimestamp"]
        if wrong_ones := self._faults(made, old):
            raise invalid(self.kind, given.get("name", ""), wrong_ones)
        if _without_version(made) == _without_version(stored):
            return stored  # a write that changes nothing gives no new version
        self.state.put(self.key, made)
        return made

    def _faults(self, made: Object, old: Object) -> list[Fault]:
        """Return the faults of a new version. The server validates its metadata twice."""
        given = made["metadata"]
        own, found = meta.faults(given), []
        if given["uid"] != old["uid"]:
            found.append(Fault("metadata.uid", given["uid"], meta.IMMUTABLE))
        once_more = [] if self.kind.name == "Lease" else own
        every = [*own, *found, *own, *found, *own, *once_more]
        return [*every, *fields.faults(self.kind, made)]

    def _delete(self, body: bytes) -> Object:
        if body and not _is_json(body):
            raise Refusal(500, "", "json: the body is malformed")
        given = _json(body) if body else {}
        if not isinstance(given, dict) or set(given) - {"preconditions"}:
            raise Unknown(
                "the model of Kubernetes has preconditions as the only option of a delete"
            )
        wanted = given.get("preconditions") or {}
        gone = self._stored()["metadata"]
        for name, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if name in wanted and wanted[name] != gone[name]:
                raise self._other(shown, wanted[name], gone[name])
        self.state.remove(self.key)
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {**details(self.kind, self.name), "uid": gone["uid"]},
        }

    def _other(self, shown: str, wanted: str, found: str) -> Refusal:
        since = "deleted and then recreated" if shown == "UID" else "modified"
        words = (
            f"the {shown} in the precondition ({wanted}) does not match the {shown} in record "
            f"({found}). The object might have been {since}"
        )
        return conflict(self.kind, self.name, words, plural=False)

    def _given(self, body: bytes) -> Object:
        """Return the object of a request."""
        found = _json(body)
        if not isinstance(found, dict):
            raise Unknown("the model of Kubernetes has no body that is no object")
        for name, own in (("apiVersion", self.kind.version), ("kind", self.kind.name)):
            if found.get(name) not in (None, "", own):
                raise Unknown(f"the model of Kubernetes has no object of another {name}")
        try:
            return self._read(found)
        except Malformed as error:
            words = f'{self.kind.name} in version "v1" cannot be handled as a {self.kind.name}'
            raise bad_request(f"{words}: {error}") from None

    def _read(self, given: Object) -> Object:
        """Return an object as it is kept. Raises Malformed."""
        made = {"kind": self.kind.name, "apiVersion": self.kind.version}
        return {
            **made,
            "metadata": meta.read(given.get("metadata")),
            **fields.read(self.kind, given),
        }


_TYPE = ("kind", "apiVersion")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"json: {error}") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _is_json(body: bytes) -> bool:
    try:
        _json(body)
    except Refusal:
        return False
    return True


def _version(given: Object) -> int:
    version = given.get("resourceVersion") or "0"
    if not version.isdecimal():
        raise Unknown(f"the model of Kubernetes has no resourceVersion {version!r}")
    return int(version)


def _without_version(one: Object) -> Object:
    given = {name: value for name, value in one["metadata"].items() if name != "resourceVersion"}
    return {**one, "metadata": given}
