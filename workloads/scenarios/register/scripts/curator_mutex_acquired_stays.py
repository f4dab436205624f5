"""Curator, InterProcessMutex: after the end of its session a mutex is still acquired.

Run with Curator 5.4.0 and ZooKeeper 3.8.0 (Debian's), Java 17, Python 3.11.
Needs: java with its compiler; Debian's libcurator-recipes-java and zookeeper (java, no service).
JARS is the folder of their jars, /usr/share/java unless set.
CONTROL=1 does not cut the connection, and no other client acquires the mutex.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import subprocess
import tempfile
import time

from frame.curator_program import curator_command
from frame.processes import running
from frame.proxy import proxy
from frame.zookeeper_server import zookeeper_server

CUT = not os.environ.get("CONTROL")
AWAY_S = 15  # longer than the session of the first client, 4 s
PROGRAM = """
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;

public final class Show {
    public static void main(String[] arguments) throws Exception {
        CuratorFramework second = Clients.connect(arguments[0], 60_000);
        CuratorFramework first = Clients.connect(arguments[1], 4_000);
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


def show(folder, port):
    closed_until = 0.0

    def cut(data):
        if time.monotonic() < closed_until:
            raise ConnectionError("cut")

    words = [str(port), str(proxy(port, cut, cut)), "" if CUT else "control"]
    command, pipe = [*curator_command(folder, PROGRAM), *words], subprocess.PIPE
    with running(command, stdin=pipe, stdout=pipe, text=True) as (_, program):
        if program.stdout.readline().strip() != "acquired":
            raise RuntimeError("the first client did not acquire the mutex")
        if CUT:
            closed_until = time.monotonic() + AWAY_S
        program.stdin.write("\n")
        program.stdin.flush()
        said = program.stdout.readline().strip()
    acquired, _, released = said.partition(" ")
    if not acquired or (not CUT and said != "true returns"):
        raise RuntimeError(f"the program did not end as planned: {said!r}")
    assert not CUT or (acquired == "false" and released != "returns"), (
        f"another client has acquired the mutex; isAcquiredInThisProcess() of the first is "
        f"{acquired} after its session has ended, and its release() {released}"
    )


if __name__ == "__main__":
    with zookeeper_server() as server, tempfile.TemporaryDirectory() as folder:
        show(folder, server.port)
