"""Curator, LeaderLatch: a candidate leads by the node of a session that is about to expire.

Run with Curator 5.4.0 and ZooKeeper 3.8.0 (Debian's), Java 17, Python 3.11.
Needs: java with its compiler; Debian's libcurator-recipes-java and zookeeper (java, no service).
JARS is the folder of their jars, /usr/share/java unless set.
CONTROL=1 does not cut the connection.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.curator_dead_session import show_dead_session

PROGRAM = """
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;

public final class Show {
    public static void main(String[] arguments) throws Exception {
        int tickMs = Integer.parseInt(arguments[2]);
        CuratorFramework first = Clients.connect(arguments[1], tickMs);
        CuratorFramework second = Clients.connect(arguments[0], 60_000);
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


if __name__ == "__main__":
    show_dead_session(PROGRAM, lambda data: b"/cut" in data)
