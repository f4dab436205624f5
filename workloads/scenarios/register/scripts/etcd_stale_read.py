"""etcd: a leader that was paused answers a linearizable read with an overwritten value.

Run with etcd 3.4.23, 3.5.16 and 3.5.30, Python 3.11.
Needs: etcd in the PATH.
CONTROL=1 delivers the delayed acknowledgement before the leader is paused.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.

Three members talk through proxies that can delay the messages of one member to another; no message
is lost or reordered on its way. Member A leads. A member C asks A for the read index of a read, A is
acknowledged by C, and its answer to C is late, as is the acknowledgement of B. C asks again with
the same id. A is paused, C or B leads, and a client releases a lock that another acquires. A
continues and is asked for the lock. Then C's second request reaches A, and then the late
acknowledgement of B, which A takes for an answer to the second request and to all before it.
"""

import base64
import os
import signal
import socket
import threading
import time

from frame.etcd_cluster import ask, etcd_cluster, leader
from frame.processes import wait_for

LATE = not os.environ.get("CONTROL")
KEY = base64.b64encode(b"lock").decode()
# Types of a raft message, which is the first field of each.
HEARTBEAT, HEARTBEAT_ANSWER, READ_INDEX, READ_INDEX_ANSWER = 8, 9, 15, 16
LIMIT_S = 10


def kind(message):
    return message[1] if message[:1] == b"\x08" else None


def read_id(message):
    """Return the id of a read in a request (the data of its entry), a heartbeat or its answer."""
    tag = b"\x22\x08" if kind(message) in (READ_INDEX, READ_INDEX_ANSWER) else b"\x62\x08"
    return message.partition(tag)[2][:8]


class Link:
    """Messages of one member to another, in order: passed on, or kept while the link is held."""

    def __init__(self):
        self.lock, self.held, self.hold_after = threading.RLock(), False, None
        self.kept, self.passed = [], []

    def send(self, sink, data, message=b""):
        with self.lock:
            if self.held:
                self.kept.append((sink, data, message))
                return
            self.write(sink, data, message)
            if self.hold_after and self.hold_after(message):
                self.held, self.hold_after = True, None

    def write(self, sink, data, message):
        try:
            sink.sendall(data)
        except OSError:
            pass
        self.passed.append(message)

    def release(self, last=lambda message: False):
        """Pass on messages up to the first that is `last`; without one, all, and open the link."""
        with self.lock:
            while self.kept:
                one = self.kept.pop(0)
                self.write(*one)
                if last(one[2]):
                    return
            self.held = False

    def keeps(self, asked):
        with self.lock:
            return any(asked(message) for _, _, message in self.kept)

    def seen(self, asked):
        with self.lock:
            return [one for one in self.passed if asked(one)]


class Network:
    """A proxy before each member. `links[source, target]` has ids of members."""

    def __init__(self):
        self.links = {}
        self.lock = threading.Lock()

    def link(self, source, target):
        with self.lock:
            return self.links.setdefault((source, target), Link())

    def front(self, port):
        """Return the port at which the other members reach the one that listens at `port`."""
        listener = socket.create_server(("127.0.0.1", 0))

        def accept():
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self.relay, args=(client, port), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]

    def relay(self, client, port):
        try:
            server = socket.create_connection(("127.0.0.1", port))
        except OSError:  # the member does not serve yet
            client.close()
            return
        try:
            head = read_head(client)
            server.sendall(head)
            threading.Thread(target=pump, args=(client, server), daemon=True).start()
            # A member sends its messages in the endless answer to such a request.
            if not head.startswith(b"GET /raft/stream/"):
                pump(server, client)
                return
            names = dict(
                line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line
            )
            link = self.link(names["X-Raft-To"], names["X-Server-From"])
            client.sendall(read_head(server))
            file = server.makefile("rb")
            framed = b"/message/" in head
            while length := int(file.readline() or b"0", 16):
                chunk = file.read(length)
                file.readline()
                for one in messages(chunk) if framed else [chunk]:
                    wire = b"%x\r\n%s\r\n" % (len(one), one)
                    link.send(client, wire, one[8:] if framed else b"")
        except (OSError, ValueError, KeyError):
            pass
        finally:
            client.close()
            server.close()


def messages(chunk):
    while chunk:
        end = 8 + int.from_bytes(chunk[:8], "big")
        yield chunk[:end]
        chunk = chunk[end:]


def read_head(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            raise OSError("the connection ended")
        head += byte
    return head


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass


def acquire(port, holder):
    """Create the key of the lock, and return its revision; None if another client has it."""
    value = base64.b64encode(holder.encode()).decode()
    free = {"key": KEY, "target": "CREATE", "result": "EQUAL", "createRevision": "0"}
    put = {"requestPut": {"key": KEY, "value": value}}
    answer = ask(port, "/v3/kv/txn", {"compare": [free], "success": [put]})
    return answer["header"]["revision"] if answer.get("succeeded") else None


def created(port, limit_s=LIMIT_S):
    """Read the lock (linearizable, the default), and return the revision that created its key."""
    answer = ask(port, "/v3/kv/range", {"key": KEY}, limit_s)
    return answer["kvs"][0]["create_revision"] if "kvs" in answer else None


def created_once_it_answers(port, answers):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            answers.append(created(port))
            return
        except OSError:  # also an answer that reports an error
            time.sleep(0.05)


def background(function, *arguments):
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


def show(members, network):
    ports = [one.port for one in members]
    old = wait_for(lambda: leader(members), "no leader", 60) - 1
    third, second = [n for n in range(3) if n != old]
    ids = [
        f"{int(ask(port, '/v3/maintenance/status', {})['header']['member_id']):x}" for port in ports
    ]
    a, b, c = ids[old], ids[second], ids[third]
    links = {pair: network.link(*pair) for pair in ((a, b), (a, c), (b, a), (c, a))}
    first = acquire(ports[old], "client-1")
    wait_for(lambda: created(ports[third]) == first, "C does not answer")

    # C asks A for the index of a read. The acknowledgement of B and A's answer to C are late.
    links[b, a].held = LATE
    links[c, a].hold_after = lambda message: kind(message) == READ_INDEX
    links[a, c].hold_after = lambda message: kind(message) == HEARTBEAT and read_id(message)
    background(created_once_it_answers, ports[third], [])
    wait_for(lambda: links[a, c].held, "A does not ask C whether it leads")
    asked = read_id(links[c, a].seen(lambda message: kind(message) == READ_INDEX)[-1])

    def acknowledges(message):
        return kind(message) == HEARTBEAT_ANSWER and read_id(message) == asked

    wait_for(lambda: links[c, a].keeps(acknowledges), "C does not acknowledge")
    links[c, a].release(acknowledges)
    wait_for(
        lambda: links[a, c].keeps(lambda message: kind(message) == READ_INDEX_ANSWER),
        "A does not answer C",
    )
    wait_for(
        lambda: links[b, a].keeps(acknowledges) or links[b, a].seen(acknowledges),
        "B does not acknowledge",
    )
    links[b, a].held = True

    # A is paused. C asks again. Then another member leads, and the lock changes its holder.
    members[old].process.send_signal(signal.SIGSTOP)
    try:
        wait_for(
            lambda: links[c, a].keeps(lambda message: kind(message) == READ_INDEX),
            "C does not ask again",
        )
        others = [members[second], members[third]]
        wait_for(lambda: leader(others), "no new leader")
        wait_for(lambda: ask(others[0].port, "/v3/kv/deleterange", {"key": KEY}), "no release")
        now = wait_for(lambda: acquire(others[0].port, "client-2"), "no second holder")
    finally:
        members[old].process.send_signal(signal.SIGCONT)

    # A is asked for the lock, as a resource asks whether the sender of a write still holds it.
    before = len(links[a, b].seen(read_id))
    answers = []
    reader = background(created_once_it_answers, ports[old], answers)
    wait_for(lambda: len(links[a, b].seen(read_id)) > before, "A does not ask whether it leads")
    links[c, a].release(lambda message: kind(message) == READ_INDEX)
    again = len(links[a, b].seen(read_id))
    wait_for(lambda: len(links[a, b].seen(read_id)) > again, "A does not see the second request")
    links[b, a].release(acknowledges)
    reader.join(0.3)
    for link in links.values():
        link.release()
    reader.join()
    assert answers[0] == now, (
        f"a linearizable read returns the lock of client-1 (revision {answers[0]}), which was "
        f"released; client-2 acquired it (revision {now}) before the read began"
    )


if __name__ == "__main__":
    network = Network()
    with etcd_cluster(network.front) as members:
        show(members, network)
