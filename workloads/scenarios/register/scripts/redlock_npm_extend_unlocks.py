"""redlock (npm): an extension that finds no quorum releases the lock, whose lease still runs.

Run with redlock 4.2.0 and 5.0.0-beta.2, ioredis 6.0.0 and Redis 7.0.15, Node 20.20
Needs: npm install redlock@4.2.0 ioredis, with NODE_PATH set to that node_modules;
redis-server and node in the PATH.
CONTROL=1 does not pause the servers.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import subprocess

from frame.redis_server import redis_servers

COUNT = 3
PAUSE = not os.environ.get("CONTROL")
# Two of three servers do not answer an extension in time. They are paused, and get the requests
# that were sent meanwhile when they continue.
PROGRAM = """
const Redis = require("ioredis");
const library = require("redlock");
const Redlock = library.default || library;
const ports = process.argv.slice(1).map(Number);
const clients = (options) => ports.map((port) => {
  const client = new Redis(port, options);
  client.on("error", () => {});
  return client;
});
const locks = (nodes) => {
  const made = new Redlock(nodes, { retryCount: 0 });
  made.on(made.lock ? "clientError" : "error", () => {});
  return made;
};
const acquire = (from) => from.lock ? from.lock("job", 20000) : from.acquire(["job"], 20000);
const report = (words) => {
  console.log(words);
  return new Promise((resume) => process.stdin.once("data", resume));
};
(async () => {
  const holder = locks(clients({ commandTimeout: 2000 }));
  // An earlier lock: from now on the servers know the library's scripts by their hash.
  const earlier = await (await acquire(holder)).extend(20000);
  await (earlier.unlock ? earlier.unlock() : earlier.release());
  const first = await acquire(holder);
  await report("acquired");
  const extended = await first.extend(20000).then(() => true, () => false);
  await report("asked");
  const nodes = clients({});
  await Promise.all(nodes.map((node) => node.ping()));
  const keys = await Promise.all(nodes.map((node) => node.exists("job")));
  const second = await acquire(locks(nodes)).then(() => true, () => false);
  console.log(JSON.stringify({
    extended, second, keys: keys.reduce((sum, one) => sum + one), left: first.expiration - Date.now()
  }));
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(3); });
"""


def show(servers):
    command = ["node", "-e", PROGRAM, *(str(server.port) for server in servers)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect(program, "acquired")
    send(servers, signal.SIGSTOP)
    resume(program)
    expect(program, "asked")
    send(servers, signal.SIGCONT)
    resume(program)
    said = program.stdout.readline()
    if program.wait() or not said:
        raise RuntimeError("the program did not end as planned")
    found = dict(part.split(":") for part in said.strip("{}\n").replace('"', "").split(","))
    assert found["second"] == "false" or found["extended"] == "true", (
        f"extend() failed, {int(found['left']) / 1000:.1f} s before the end of the lease, and "
        f"{found['keys']} of {COUNT} servers have the key: another client acquired the lock"
    )


def send(servers, what):
    for server in servers[1:] if PAUSE else []:
        server.process.send_signal(what)


def expect(program, words):
    if program.stdout.readline().strip() != words:
        raise RuntimeError(f"the program did not come to {words!r}")


def resume(program):
    program.stdin.write("\n")
    program.stdin.flush()


if __name__ == "__main__":
    with redis_servers(COUNT) as servers:
        show(servers)
