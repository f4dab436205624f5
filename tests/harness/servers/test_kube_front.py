"""The front of an API server: it adds the token, and passes everything else on as it comes."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from fencepost.harness.servers import kube_front

HOST = "127.0.0.1"
TOKEN = "secret"


class Behind:
    """A server behind the front. `says` is called with each connection."""

    def __init__(self, says):
        self.heard = b""
        self.ended = asyncio.Event()
        self._says = says

    async def serve(self, reader, writer):
        told = asyncio.create_task(self._says(writer))
        while data := await reader.read(1 << 16):
            self.heard += data
        self.ended.set()
        told.cancel()
        writer.close()


async def silent(writer):
    await asyncio.Event().wait()


def play(says, use):
    """Run `use` with the behind and a connection to its front."""

    async def run():
        behind = Behind(says)
        async with (
            await asyncio.start_server(behind.serve, HOST, 0) as server,
            await kube_front.listen(HOST, 0, port(server), TOKEN, secure=None) as front,
        ):
            reader, writer = await asyncio.open_connection(HOST, port(front))
            with contextlib.closing(writer):
                await asyncio.wait_for(use(behind, reader, writer), 60)

    asyncio.run(run())


def port(server):
    return server.sockets[0].getsockname()[1]


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


def test_each_request_of_a_connection_gets_the_token_and_keeps_its_body():
    bodies = [b"", b"x" * 200_000, b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"]

    def request(body, more=""):
        return f"PUT /a HTTP/1.1\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body

    async def use(behind, reader, writer):
        for body in bodies:
            writer.write(request(body))
        expected = b"".join(request(body, f"Authorization: Bearer {TOKEN}\r\n") for body in bodies)
        await until(lambda: len(behind.heard) >= len(expected))
        assert behind.heard == expected

    play(silent, use)


def test_an_answer_without_an_end_is_passed_on_piece_by_piece():
    read = asyncio.Event()

    async def says(writer):
        writer.write(b"first")
        await read.wait()
        writer.write(b"second")
        await asyncio.Event().wait()

    async def use(behind, reader, writer):
        assert await reader.readexactly(5) == b"first"
        read.set()
        assert await reader.readexactly(6) == b"second"

    play(says, use)


def test_the_end_of_a_client_ends_the_connection_behind_it():
    async def use(behind, reader, writer):
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: behind.heard)
        writer.close()
        await behind.ended.wait()

    play(silent, use)


def test_the_end_of_the_server_ends_the_connection_of_the_client():
    async def ends(writer):
        writer.write(b"last")
        writer.close()

    async def use(behind, reader, writer):
        assert await reader.read() == b"last"

    play(ends, use)


@pytest.mark.parametrize("field", ["Transfer-Encoding: chunked", "Content-Length: -1"])
def test_a_request_whose_end_cannot_be_told_is_reset(field):
    async def use(behind, reader, writer):
        writer.write(f"PUT / HTTP/1.1\r\n{field}\r\n\r\n".encode())
        with pytest.raises(ConnectionResetError):
            await reader.read()
        assert not behind.heard

    play(silent, use)


def test_a_client_is_reset_while_no_server_is_behind():
    async def run():
        async with await asyncio.start_server(lambda reader, writer: None, HOST, 0) as server:
            gone = port(server)
        async with await kube_front.listen(HOST, 0, gone, TOKEN, secure=None) as front:
            reader, _ = await asyncio.open_connection(HOST, port(front))
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(reader.read(), 60)

    asyncio.run(run())
