"""A stand-in for the Kubernetes API server."""

import http.server
import json
import threading


class Api:
    """One Lease, with the API server's optimistic concurrency."""

    def __init__(self):
        self.lease, self.version, self.mutex = None, 0, threading.Lock()
        self.struck = threading.Event()

    def answer(self, method, body):
        with self.mutex:
            if method == "GET" and self.lease is None:
                return 404, {"kind": "Status", "code": 404}
            if method == "POST" and self.lease is not None:
                return 409, {"kind": "Status", "code": 409}
            if method == "PUT" and body["metadata"].get("resourceVersion") != str(self.version):
                return 409, {"kind": "Status", "code": 409}
            if method != "GET":
                self.version += 1
                body["metadata"]["resourceVersion"] = str(self.version)
                self.lease = body
            return 200, self.lease


def serve(api, fault=None):
    """Serve the API on a port of its own; with a fault, once `api.struck` is set."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            if fault and api.struck.is_set():
                if fault == "hang":
                    threading.Event().wait()  # the answer never comes
                self.close_connection = True  # the connection ends without an answer
                return
            code, said = api.answer(self.command, body)
            content = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = handle_one

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
