"""redis-lock (npm): a release that arrives late deletes the key of the next client.

Run with redis-lock 1.0.0, redis (npm) 4.7.1 and Redis 7.0.15, Node 20.20
Needs: npm install redis-lock@1.0.0 redis@4, with NODE_PATH set to that node_modules;
redis-server and node in the PATH.
CONTROL=1 does not delay the release.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import subprocess
import tempfile
import threading
import time

TTL_MS = 2000
PROGRAM = """
const { createClient } = require("redis");
const lock = require("redis-lock");
const [ours, slow, ttl] = process.argv.slice(1).map(Number);
const connected = async (port) => createClient({ socket: { port } }).connect();
const client = async (port) => lock(await connected(port), 10);
const got = (locking) => Promise.race([locking.then(() => true),
  new Promise((resolve) => setTimeout(() => resolve(false), ttl / 2))]);
(async () => {
  const [first, second, third] = [await client(slow), await client(ours), await client(ours)];
  const release = await first("job", ttl);
  release();  // in time, and on its way for longer than the rest of the lease
  await second("job", 2 * ttl);
  console.log(await got(third("job", ttl)) ? "two" : "one");
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(3); });
"""


def slow(port):
    """A proxy that delays the requests of a client from a DEL on."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, sink, requests):
        while data := source.recv(65536):
            if requests and b"DEL" in data and not os.environ.get("CONTROL"):
                time.sleep(1.25 * TTL_MS / 1000)
            sink.sendall(data)

    def serve():
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for job in ((client, server, True), (server, client, False)):
                threading.Thread(target=pump, args=job, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def show(port):
    command = ["node", "-e", PROGRAM, str(port), str(slow(port)), str(TTL_MS)]
    got = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if got.returncode:
        raise RuntimeError(got.stderr)
    assert got.stdout.strip() != "two", (
        "the release of the first client, sent within its lease, freed the lock of the second one: "
        "a third one holds it too"
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("redis-server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            show(port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
