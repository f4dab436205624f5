"""redlock and its forks: the answers to an acquire arrive after its TTL."""

import json

from frame.node_program import node
from frame.redis_server import redis_server

LATE = """
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


def show_late(package):
    with redis_server() as server:
        seen = json.loads(node(LATE, package, server.port))
    assert seen["late"] is None or not seen["other"], (
        f"acquire() returned a lock that had expired {seen['late']} ms before, while another "
        "client holds it"
    )
