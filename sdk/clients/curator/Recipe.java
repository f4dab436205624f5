import java.util.function.Consumer;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/** Curator's InterProcessMutex, used exactly as its documentation describes. */
final class Recipe implements AutoCloseable {
    /** The path of the hold's znode, which the library does not make public. */
    static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String path() {
            return getLockPath();
        }
    }

    private static final int WARM_UP_MS = 2_000;

    private final String hosts;
    private final int requestMs;
    private final Consumer<String> unsure;
    private CuratorFramework client;

    /** Calls `unsure` on SUSPENDED and LOST, when a lock counts as lost by Curator's documentation. */
    Recipe(String hosts, int requestMs, Consumer<String> unsure) {
        this.hosts = hosts;
        this.requestMs = requestMs;
        this.unsure = unsure;
    }

    /**
     * Acquires and releases an uncontended lock. Loading Curator's classes takes the JVM some half
     * a second, which would look like a wait for the lock.
     */
    static void warmUp(String hosts, int requestMs, String node) {
        try (Recipe recipe = new Recipe(hosts, requestMs, why -> { })) {
            Mutex mutex = recipe.acquire("warm-up-" + node, WARM_UP_MS, WARM_UP_MS);
            if (mutex != null) {
                recipe.token(mutex);
                mutex.release();
            }
        } catch (Exception error) {
            System.err.println("not warmed up: " + error);
        }
    }

    /** Returns the acquired mutex, or null after the timeout. */
    Mutex acquire(String name, int sessionMs, long waitMs) throws Exception {
        if (client == null) {
            client = CuratorFrameworkFactory.builder()
                .connectString(hosts)
                .sessionTimeoutMs(sessionMs)
                .connectionTimeoutMs(requestMs)
                .retryPolicy(new ExponentialBackoffRetry(100, 3))
                .build();
            client.getConnectionStateListenable().addListener((from, state) -> {
                if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                    unsure.accept("Curator's connection is " + state);
                }
            });
            client.start();
        }
        Mutex mutex = new Mutex(client, "/fencepost/" + name);
        return mutex.acquire(waitMs, TimeUnit.MILLISECONDS) ? mutex : null;
    }

    /** Returns the czxid of the hold's znode; null if it does not exist. */
    Long token(Mutex mutex) throws Exception {
        Stat stat = client.checkExists().forPath(mutex.path());
        return stat == null ? null : stat.getCzxid();
    }

    @Override
    public void close() {
        if (client != null) {
            client.close();
        }
    }
}
