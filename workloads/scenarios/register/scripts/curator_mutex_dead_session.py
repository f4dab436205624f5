"""Curator, InterProcessMutex: acquire succeeds by the node of a session that is about to expire.

Run with Curator 5.4.0 and ZooKeeper 3.8.0 (Debian's), Java 17, Python 3.11.
Needs: java with its compiler; Debian's libcurator-recipes-java and zookeeper (java, no service).
JARS is the folder of their jars, /usr/share/java unless set.
CONTROL=1 does not cut the connection.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import struct

from frame.curator_dead_session import show_dead_session

GET_CHILDREN = (8, 12)  # types of a request, after its length and its number
PROGRAM = """
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

public final class Show {
    public static void main(String[] arguments) throws Exception {
        int tickMs = Integer.parseInt(arguments[2]);
        CuratorFramework second = Clients.connect(arguments[0], 60_000);
        CuratorFramework first = Clients.connect(arguments[1], tickMs);
        second.create().creatingParentContainersIfNeeded().forPath("/job");
        InterProcessMutex one = new InterProcessMutex(first, "/job");
        InterProcessMutex two = new InterProcessMutex(second, "/job");
        // A server ends a session at the first look after its timeout. So that it looks as late as
        // possible, the first client asks shortly after a look.
        Thread.sleep(tickMs + 300 - System.nanoTime() / 1_000_000 % tickMs);
        long dead = first.getZookeeperClient().getZooKeeper().getSessionId();
        one.acquire();
        AtomicInteger notices = new AtomicInteger();
        first.getConnectionStateListenable().addListener((from, state) -> notices.incrementAndGet());
        boolean another = first.getZookeeperClient().getZooKeeper().getSessionId() != dead;
        boolean granted = two.acquire(4L * tickMs, TimeUnit.MILLISECONDS);
        if (granted && one.isAcquiredInThisProcess()) {
            System.out.println(
                "both mutexes are acquired; the first client has "
                + (another ? "another session than that of its node, " : "its first session, ")
                + notices.get() + " notices of its connection since its acquire returned, and "
                + second.getChildren().forPath("/job").size() + " node is in the queue");
        }
        System.exit(0);
    }
}
"""


def asks_for_children(data):
    return len(data) >= 12 and struct.unpack(">i", data[8:12])[0] in GET_CHILDREN


if __name__ == "__main__":
    show_dead_session(PROGRAM, asks_for_children)
