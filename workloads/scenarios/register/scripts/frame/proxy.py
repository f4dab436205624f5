"""A proxy that can delay data, or end a connection."""

import socket
import threading
from contextlib import suppress


def proxy(port, request=None, answer=None):
    """Lead connections to a server; return the port for them. The functions are called with the
    data before it is sent on, and `request` with b"" when a client connects. If one raises
    ConnectionError, the data is lost and the connection ends."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, sink, function):
        with suppress(OSError):
            while data := source.recv(65536):
                if function:
                    function(data)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve():
        while True:
            client, _ = listener.accept()
            try:
                if request:
                    request(b"")
                server = socket.create_connection(("127.0.0.1", port))
            except OSError:
                client.close()
                continue
            for job in ((client, server, request), (server, client, answer)):
                threading.Thread(target=pump, args=job, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]
