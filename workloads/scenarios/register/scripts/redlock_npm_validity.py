"""redlock (npm): acquire returns a lock that has expired, and that another client holds.

Run with redlock 5.0.0-beta.2, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redlock@5.0.0-beta.2 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH. PACKAGE=@sesamecare-oss/redlock runs that fork.
CONTROL=1 delays the answers for less than the TTL.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import json
import os
import socket
import subprocess
import tempfile
import time

COUNT = 1
PACKAGE = os.environ.get("PACKAGE", "redlock")
PROGRAM = """
const net = require("net");
const Redis = require("ioredis");
const library = require(process.argv[1]);
const Redlock = library.default || library.Redlock;
const port = Number(process.argv[2]);
const slow = net.createServer((client) => {  // answers arrive late
  const server = net.connect(port, "127.0.0.1");
  client.on("data", (data) => server.write(data));
  server.on("data", (data) => setTimeout(() => client.write(data), process.env.CONTROL ? 100 : 1500));
});
slow.listen(0, "127.0.0.1", async () => {
  const far = new Redis(slow.address().port, { enableReadyCheck: false });
  const near = new Redis(port);
  const settings = { retryCount: 100, retryDelay: 50, retryJitter: 0 };
  const [first, second] = [new Redlock([far], settings), new Redlock([near], settings)];
  for (const one of [first, second]) one.on("error", () => {});
  await far.ping();
  const pending = first.acquire(["job"], 500).catch(() => null);
  while (!(await near.exists("job"))) await new Promise((next) => setTimeout(next, 5));
  let held = null;
  second.acquire(["job"], 30000).then((lock) => { held = lock; });
  const got = await pending;
  await new Promise((next) => setTimeout(next, 100));
  console.log(JSON.stringify({
    late: got ? Date.now() - got.expiration : null,
    other: held !== null && (await near.get("job")) === held.value,
  }));
  process.exit(0);
});
"""


def show(ports):
    command = ["node", "-e", PROGRAM, PACKAGE, *map(str, ports)]
    got = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if got.returncode:
        raise RuntimeError(got.stderr)
    seen = json.loads(got.stdout)
    assert seen["late"] is None or not seen["other"], (
        f"acquire() returned a lock that had expired {seen['late']} ms before, while another "
        "client holds it"
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
        servers, ports = [], []
        try:
            for _ in range(COUNT):
                server, port = start(folder)
                servers.append(server)
                ports.append(port)
            show(ports)
        finally:
            for server in servers:
                server.kill()
                server.wait()


if __name__ == "__main__":
    main()
