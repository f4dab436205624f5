"""redis-py, asyncio Lock: acquire cancelled while the answer travels leaves the key.

Run with redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import socket
import subprocess
import tempfile
import time

import redis.asyncio


async def proxy(port, delay):
    """Forward to the server, and hold back each of its answers by `delay["s"]`."""

    async def answer(reader, writer):
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", port)

        async def pump(source, sink, answers):
            while data := await source.read(65536):
                if answers:
                    await asyncio.sleep(delay["s"])
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(
            pump(reader, upstream_writer, False),
            pump(upstream_reader, writer, True),
            return_exceptions=True,
        )

    return await asyncio.start_server(answer, "127.0.0.1", 0)


async def show(port):
    delay = {"s": 0.0}
    between = await proxy(port, delay)
    client = redis.asyncio.Redis(port=between.sockets[0].getsockname()[1])
    direct = redis.asyncio.Redis(port=port)
    await client.ping()
    lock = client.lock("job")
    delay["s"] = 1.0
    attempt = asyncio.create_task(lock.acquire())
    while not await direct.exists("job"):  # SET has reached the server, its answer travels
        await asyncio.sleep(0.01)
    attempt.cancel()
    try:
        await attempt
        raise RuntimeError("acquire ended before it was cancelled")
    except asyncio.CancelledError:
        pass
    delay["s"] = 0.0
    owned = await lock.owned()
    await asyncio.sleep(2)  # time for the library to clean up
    left, ttl_s = await direct.exists("job"), await direct.ttl("job")
    await client.aclose()
    await direct.aclose()
    assert not left, (
        f"acquire was cancelled and owned() is {owned}, but the key is still there with TTL {ttl_s} "
        "(-1: for ever): no client can acquire the lock"
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
            asyncio.run(show(port))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
