import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** The ZooKeeper session of one candidate, and the end of its candidacy. */
final class Session {
    private final String hosts;
    private final int requestMs;
    private final CountDownLatch over = new CountDownLatch(1);

    Session(Fencepost.Client client) {
        hosts =
            client.servers.stream().map(Fencepost.Server::toString).collect(Collectors.joining(","));
        requestMs = client.number("node_timeout_ms", 1_000);
    }

    CuratorFramework start(Fencepost.Candidacy candidacy) {
        CuratorFramework session = CuratorFrameworkFactory.builder()
            .connectString(hosts)
            .sessionTimeoutMs((int) candidacy.ttl.toMillis())
            .connectionTimeoutMs(requestMs)
            .retryPolicy(new ExponentialBackoffRetry(100, 3))
            .build();
        session.start();
        return session;
    }

    static String path(Fencepost.Candidacy candidacy) {
        return "/fencepost/" + candidacy.name;
    }

    /** Ends the candidacy: it has resigned, or leads no more. */
    void end() {
        over.countDown();
    }

    void awaitEnd() throws InterruptedException {
        over.await();
    }
}
