import java.io.IOException;
import java.time.Duration;
import java.util.stream.Collectors;

/** Curator's InterProcessMutex as a client of fencepost, on its SDK (sdk/java). */
public final class Worker implements Fencepost.Lock {
    private static boolean warm;

    private final Recipe recipe;
    private final int waitMs;
    // Set once the lock was certainly granted: Curator's notices count from then on.
    private volatile Recipe.Mutex held;

    private Worker(Fencepost.Client client) {
        String hosts =
            client.servers.stream().map(Fencepost.Server::toString).collect(Collectors.joining(","));
        int requestMs = client.number("node_timeout_ms", 1_000);
        waitMs = client.number("wait_ms", 10_000);
        if (!warm) {
            warm = true;
            Recipe.warmUp(hosts, requestMs, client.node);
        }
        recipe = new Recipe(hosts, requestMs, why -> {
            if (held != null) {
                client.lost(null, why);
            }
        });
    }

    public static void main(String[] arguments) throws IOException {
        Fencepost.run(Worker::new);
    }

    @Override
    public Fencepost.Grant acquire(String name, Duration ttl) throws Exception {
        Recipe.Mutex mutex = recipe.acquire(name, (int) ttl.toMillis(), waitMs);
        if (mutex == null) {
            throw new Fencepost.Failed("not its turn within " + waitMs + " ms");
        }
        held = mutex; // before the check that the znode exists
        Long token = recipe.token(mutex);
        if (token == null) {
            throw new Fencepost.Indeterminate("acquire returned, but its znode is gone", "not-held");
        }
        // Curator does not report how long the session lives.
        return new Fencepost.Grant().token(token).withoutDeadline();
    }

    @Override
    public boolean release(String name) throws Exception {
        Recipe.Mutex mutex = held;
        held = null;
        try {
            mutex.release();
        } catch (IllegalMonitorStateException error) {
            throw new Fencepost.Failed(error.getMessage());
        }
        return true;
    }

    @Override
    public void close() {
        recipe.close();
    }
}
