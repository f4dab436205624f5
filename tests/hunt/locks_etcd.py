"""User locks on etcd's JSON gateway, with the HTTP client of the standard library."""

import base64
import json
from http.client import HTTPConnection, HTTPException

import fencepost


class Sound:
    """A key of a lease, created in a transaction; the release revokes the lease."""

    def __init__(self, servers):
        self.servers = servers
        self.lease = None

    def acquire(self, name, ttl):
        self.lease = self.ask("/v3/lease/grant", {"TTL": round(ttl)})["ID"]
        key = coded(name)
        put = {"requestPut": {"key": key, "value": coded("mine"), "lease": self.lease}}
        free = {"key": key, "target": "CREATE", "createRevision": "0"}
        answer = self.ask("/v3/kv/txn", {"compare": [free], "success": [put]})
        if answer.get("succeeded"):
            return True
        self.give_back(name)
        return False

    def release(self, name):
        self.give_back(name)

    def give_back(self, name):
        self.ask("/v3/lease/revoke", {"ID": self.lease})

    def ask(self, path, body):
        """Ask one server after the other, until one has received the request."""
        for host, port in self.servers:
            link = HTTPConnection(host, port, timeout=0.3)
            try:
                link.connect()
            except OSError:
                continue
            try:
                link.request("POST", path, json.dumps(body))
                answer = link.getresponse()
                found = json.loads(answer.read())
            finally:
                link.close()
            if answer.status == 404:  # the lease has expired
                raise fencepost.Failed(found["message"])
            if answer.status != 200:
                raise HTTPException(found["message"])
            return found
        raise fencepost.Failed("no server takes a connection")


class DeletesAnothers(Sound):
    """Its release deletes the key of any client."""

    def release(self, name):
        self.ask("/v3/kv/deleterange", {"key": coded(name)})


def coded(text):
    return base64.b64encode(text.encode()).decode()
