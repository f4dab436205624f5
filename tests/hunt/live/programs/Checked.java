import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/**
 * Curator's InterProcessMutex with the check that it lacks: the node with which it was granted must
 * be one of the present session.
 */
public final class Checked implements Fencepost.Lock {
    private static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String path() {
            return getLockPath();
        }
    }

    private final Fencepost.Client process;
    private CuratorFramework client;
    private volatile Mutex held;
    private volatile int doubts;

    private Checked(Fencepost.Client process) {
        this.process = process;
    }

    public static void main(String[] arguments) throws IOException {
        Fencepost.run(Checked::new);
    }

    private void connect(Duration ttl) {
        client = CuratorFrameworkFactory.builder()
            .connectString(process.servers.stream()
                .map(Fencepost.Server::toString).collect(Collectors.joining(",")))
            .sessionTimeoutMs((int) ttl.toMillis())
            .connectionTimeoutMs(1_000)
            .retryPolicy(new ExponentialBackoffRetry(100, 3))
            .build();
        client.getConnectionStateListenable().addListener((from, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                doubts++;
                if (held != null) {
                    process.lost(null, "Curator's connection is " + state);
                }
            }
        });
        client.start();
    }

    @Override
    public Fencepost.Grant acquire(String name, Duration ttl) throws Exception {
        if (client == null) {
            connect(ttl);
        }
        Mutex mutex = new Mutex(client, "/fencepost/" + name);
        if (!mutex.acquire(10, TimeUnit.SECONDS)) {
            throw new Fencepost.Failed("not its turn");
        }
        int before = doubts;
        held = mutex;
        Stat stat = client.checkExists().forPath(mutex.path());
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        if (stat == null || stat.getEphemeralOwner() != session || doubts != before) {
            held = null;
            throw new Fencepost.Indeterminate("its node is not of this session", "not-held");
        }
        return new Fencepost.Grant().token(stat.getCzxid()).withoutDeadline();
    }

    @Override
    public boolean release(String name) throws Exception {
        Mutex mutex = held;
        held = null;
        mutex.release();
        return true;
    }

    @Override
    public void close() {
        if (client != null) {
            client.close();
        }
    }
}
