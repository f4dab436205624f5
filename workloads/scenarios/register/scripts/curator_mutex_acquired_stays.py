"""Curator, InterProcessMutex: after the end of its session a mutex is still acquired.

Run with Curator 5.4.0 and ZooKeeper 3.8.0 (Debian's), Java 17, Python 3.11.
Needs: java with its compiler; Debian's libcurator-recipes-java and zookeeper (java, no service).
JARS is the folder of their jars, /usr/share/java unless set.
CONTROL=1 does not cut the connection, and no other client acquires the mutex.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import subprocess
import tempfile
import threading
import time

JARS = os.environ.get("JARS", "/usr/share/java")
PATH = ":".join(
    f"{JARS}/{name}.jar"
    for name in (
        "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
        "guava", "slf4j-api",
    )
)  # fmt: skip
CUT = not os.environ.get("CONTROL")
AWAY_S = 15  # longer than the session of the first client, 4 s
CONFIG = """tickTime=1000
maxSessionTimeout=120000
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={folder}
admin.enableServer=false
4lw.commands.whitelist=ruok
"""
PROGRAM = """
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

public final class Show {
    static CuratorFramework connect(String at, int sessionMs) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
            .connectString("127.0.0.1:" + at)
            .sessionTimeoutMs(sessionMs)
            .connectionTimeoutMs(5_000)
            .retryPolicy(new RetryForever(200))
            .build();
        client.start();
        client.blockUntilConnected();
        return client;
    }

    public static void main(String[] arguments) throws Exception {
        CuratorFramework second = connect(arguments[0], 60_000);
        CuratorFramework first = connect(arguments[1], 4_000);
        InterProcessMutex one = new InterProcessMutex(first, "/job");
        InterProcessMutex two = new InterProcessMutex(second, "/job");
        CountDownLatch lost = new CountDownLatch(1);
        CountDownLatch back = new CountDownLatch(1);
        first.getConnectionStateListenable().addListener((from, state) -> {
            if (state == ConnectionState.LOST) {
                lost.countDown();
            } else if (state == ConnectionState.RECONNECTED && lost.getCount() == 0) {
                back.countDown();
            }
        });
        one.acquire();
        System.out.println("acquired");
        System.in.read();
        if (arguments[2].isEmpty()) {
            if (!two.acquire(60, TimeUnit.SECONDS) || !back.await(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the session did not end");
            }
        }
        boolean acquired = one.isAcquiredInThisProcess();
        String released = "returns";
        try {
            one.release();
        } catch (Exception error) {
            released = "throws " + error;
        }
        System.out.println(acquired + " " + released);
        System.exit(0);
    }
}
"""


class Front:
    """A proxy before the server, which can end its connections and refuse others for a while."""

    def __init__(self, port):
        self.server_port, self.closed_until, self.ends = port, 0.0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def cut(self):
        self.closed_until = time.monotonic() + AWAY_S
        for end in self.ends:
            shut(end)

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            if time.monotonic() < self.closed_until:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.server_port))
            self.ends += [client, server]
            for job in ((client, server), (server, client)):
                threading.Thread(target=pump, args=job, daemon=True).start()


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    shut(source)
    shut(sink)


def shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def show(folder, port):
    place = os.path.join(folder, "Show.java")
    with open(place, "w") as file:
        file.write(PROGRAM)
    front = Front(port)
    words = [str(port), str(front.port), "" if CUT else "control"]
    program = subprocess.Popen(
        ["java", "-Xmx128m", "-cp", PATH, place, *words], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        if program.stdout.readline().strip() != "acquired":
            raise RuntimeError("the first client did not acquire the mutex")
        if CUT:
            front.cut()
        program.stdin.write("\n")
        program.stdin.flush()
        said = program.stdout.readline().strip()
    finally:
        program.kill()
        program.wait()
    acquired, _, released = said.partition(" ")
    if not acquired or (not CUT and said != "true returns"):
        raise RuntimeError(f"the program did not end as planned: {said!r}")
    assert not CUT or (acquired == "false" and released != "returns"), (
        f"another client has acquired the mutex; isAcquiredInThisProcess() of the first is "
        f"{acquired} after its session has ended, and its release() {released}"
    )


def start(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = os.path.join(folder, "zoo.cfg")
    with open(config, "w") as file:
        file.write(CONFIG.format(port=port, folder=folder))
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = ["java", "-Xmx128m", "-cp", f"{JARS}/zookeeper.jar:{JARS}/*", main, config]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"ruok")
                if connection.recv(4) == b"imok":
                    return server, port
        except OSError:
            if server.poll() is not None:
                break
        time.sleep(0.05)
    server.kill()
    raise RuntimeError("ZooKeeper did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            show(folder, port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
