"""Curator, LeaderLatch: a candidate leads by the node of a session that is about to expire.

Run with Curator 5.4.0 and ZooKeeper 3.8.0 (Debian's), Java 17, Python 3.11.
Needs: java with its compiler; Debian's libcurator-recipes-java and zookeeper (java, no service).
JARS is the folder of their jars, /usr/share/java unless set.
CONTROL=1 does not cut the connection.
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
TICK_S = 8  # the server looks this often for sessions that have expired
AWAY_S = TICK_S + 2
CONFIG = """tickTime={tick}
minSessionTimeout=1000
maxSessionTimeout=120000
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={folder}
admin.enableServer=false
4lw.commands.whitelist=ruok
"""
PROGRAM = """
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
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
        int tickMs = Integer.parseInt(arguments[2]);
        CuratorFramework first = connect(arguments[1], tickMs);
        CuratorFramework second = connect(arguments[0], 60_000);
        LeaderLatch one = new LeaderLatch(first, "/job", "first");
        LeaderLatch two = new LeaderLatch(second, "/job", "second");
        AtomicInteger stops = new AtomicInteger();
        one.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
            }

            @Override
            public void notLeader() {
                stops.incrementAndGet();
            }
        });
        one.start();
        one.await();
        two.start();
        // A server ends a session at the first look after its timeout. So that it looks as late as
        // possible, the connection ends shortly after a look.
        Thread.sleep(tickMs + 300 - System.nanoTime() / 1_000_000 % tickMs);
        first.checkExists().forPath("/job"); // the server hears from the session just now
        first.checkExists().forPath("/cut"); // returns when it is connected again
        int before = stops.get();
        boolean led = one.await(2, TimeUnit.SECONDS);
        boolean leads = two.await(4L * tickMs, TimeUnit.MILLISECONDS);
        if (led && leads && one.hasLeadership()) {
            Thread.sleep(tickMs);
            System.out.println(
                "both candidates lead, also " + tickMs + " ms later: " + one.hasLeadership() + ", "
                + two.hasLeadership() + "; the first one was told " + (stops.get() - before)
                + " times to stop since it was connected again");
        }
        System.exit(0);
    }
}
"""


def cut_on_request(port):
    """A proxy that ends its connection when asked for /cut, and refuses others for a while."""
    listener, cut, closed_until = socket.create_server(("127.0.0.1", 0)), threading.Event(), [0.0]

    def pump(source, sink, requests):
        try:
            while data := source.recv(65536):
                if requests and CUT and not cut.is_set() and b"/cut" in data:
                    cut.set()
                    closed_until[0] = time.monotonic() + AWAY_S
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        while True:
            client, _ = listener.accept()
            if time.monotonic() < closed_until[0]:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", port))
            for job in ((client, server, True), (server, client, False)):
                threading.Thread(target=pump, args=job, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def show(folder, port):
    place = os.path.join(folder, "Show.java")
    with open(place, "w") as file:
        file.write(PROGRAM)
    words = [str(port), str(cut_on_request(port)), str(TICK_S * 1000)]
    ended = subprocess.run(
        ["java", "-Xmx128m", "-cp", PATH, place, *words], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    if ended.returncode:
        raise RuntimeError("the program did not end as planned")
    assert not ended.stdout, ended.stdout.strip()


def start(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = os.path.join(folder, "zoo.cfg")
    with open(config, "w") as file:
        file.write(CONFIG.format(port=port, folder=folder, tick=TICK_S * 1000))
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
