import java.util.function.Consumer;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.data.Stat;

/** Curator's InterProcessMutex as its documentation has it, and nothing beside it. */
final class Recipe implements AutoCloseable {
    /** The path of the znode that stands for the hold is the library's own, but not public. */
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

    /** Curator tells its users to take a lock for lost on SUSPENDED and on LOST: `unsure` is told. */
    Recipe(String hosts, int requestMs, Consumer<String> unsure) {
        this.hosts = hosts;
        this.requestMs = requestMs;
        this.unsure = unsure;
    }

    /**
     * Take and leave a lock that nobody else asks for: loading Curator's classes takes the JVM
     * some half a second, which would be a wait for the lock by its look.
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

    /** The mutex, held; null where it was not its turn in time. */
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

    /** The czxid of the znode that stands for the hold; null where it is not there. */
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
