"""redlock and its forks: the key is free on a majority when acquire tries again."""

from frame.node_program import node
from frame.redis_server import redis_servers

RETRY = """
const Redis = require("ioredis");
const library = require(process.argv[1]);
const Redlock = library.default || library.Redlock;
(async () => {
  const nodes = process.argv.slice(2).map((port) => new Redis(Number(port)));
  if (!process.env.CONTROL) await nodes[1].set("job", "another client");
  await nodes[2].set("job", "another client");
  const locks = new Redlock(nodes, { retryCount: 10, retryDelay: 100, retryJitter: 0 });
  locks.on("error", () => {});
  setTimeout(() => nodes[1].del("job"), 250);  // from now on the key is free on a majority
  const got = await locks.acquire(["job"], 10000).then(
    () => "acquired", (error) => "refused: " + error.message);
  console.log(got);
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(3); });
"""


def show_retry(package):
    with redis_servers(3) as servers:
        got = node(RETRY, package, *(server.port for server in servers))
    assert got == "acquired", (
        f"no other client has the key on two of three servers for 0.75 s, and acquire() was {got}"
    )
