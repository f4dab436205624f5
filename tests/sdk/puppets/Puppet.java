import java.io.IOException;
import java.time.Duration;
import java.time.Instant;

/** A lock that does what the lock's name says. */
final class Puppet implements Fencepost.Lock {
    private final Fencepost.Client client;

    private Puppet(Fencepost.Client client) throws IOException {
        this.client = client;
        System.out.println("made for " + client.servers + client.number("retries", 0) + client.seed);
        if (Boolean.TRUE.equals(client.options.get("mute"))) {
            throw new IOException("no server answers");
        }
    }

    public static void main(String[] arguments) throws IOException {
        Fencepost.run(Puppet::new, "fifo", "one_wakeup");
    }

    @Override
    public Fencepost.Grant acquire(String name, Duration ttl) throws Exception {
        Fencepost.Grant grant = new Fencepost.Grant();
        switch (name) {
            case "lost-at-once":
                client.lost(null, "its session ended");
                client.lost("another", "not this one's");
                return grant;
            case "no":
            case "nothing":
                return null;
            case "token":
                return grant.token((1L << 60) + 1);
            case "short":
                return grant.until(System.nanoTime() + ttl.toNanos() / 2);
            case "over":
                return grant.until(Instant.now().minusSeconds(1));
            case "woken":
                return grant.wakeups(2);
            case "endless":
                return grant.withoutDeadline();
            case "failed":
                throw new Fencepost.Failed("somebody else has it");
            case "no-quorum":
                throw new Fencepost.Failed("two of five", "no-quorum");
            case "timeout":
                throw new Fencepost.Indeterminate("no reply", "timeout");
            case "raises":
                throw new IOException("what now");
            case "exit":
                System.err.println("enough");
                System.exit(1);
                return null;
            default:
                return grant;
        }
    }

    @Override
    public Fencepost.Grant extend(String name, Duration ttl) {
        if (name.equals("renewed")) {
            client.renewed(name, System.nanoTime() + 3_000_000_000L);
            client.lost(name, "its lease ran out");
        }
        return name.equals("not-extended") ? null : new Fencepost.Grant();
    }

    @Override
    public boolean release(String name) throws IOException {
        if (name.equals("release-raises")) {
            throw new IOException("what now");
        }
        return !name.equals("not-released");
    }

    @Override
    public void close() throws IOException {
        System.out.println("closed");
        if ("raises".equals(client.options.get("close"))) {
            throw new IOException("no such socket");
        }
    }
}
