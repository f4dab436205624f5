import java.util.concurrent.CountDownLatch;

/** An elector that does what the election's name says. */
public final class ElectorPuppet implements Fencepost.Elector {
    private final CountDownLatch resigned = new CountDownLatch(1);

    public static void main(String[] arguments) throws Exception {
        Fencepost.runElector(ElectorPuppet::new);
    }

    private ElectorPuppet(Fencepost.Client client) throws Exception {
        if (Boolean.TRUE.equals(client.options.get("mute"))) {
            throw new Exception("no server answers");
        }
    }

    @Override
    public void run(Fencepost.Candidacy candidacy) throws Exception {
        switch (candidacy.name) {
            case "refused":
                throw new Exception("no server answers");
            case "never":
                new CountDownLatch(1).await();
                break;
            case "stops-first":
                candidacy.stopped();
                break;
            case "over":
                candidacy.started(new Fencepost.Grant().until(System.nanoTime() - 1));
                break;
            case "renewed":
                long ttl = candidacy.ttl.toNanos();
                long now = System.nanoTime();
                candidacy.started(new Fencepost.Grant().token(7L).until(now + ttl));
                candidacy.renewed(now + 2 * ttl);
                break;
            default:
                candidacy.started();
        }
        switch (candidacy.name) {
            case "twice":
                candidacy.started();
                break;
            case "raises":
                throw new Exception("connection reset");
            case "returns":
                return;
            case "stuck":
                new CountDownLatch(1).await();
                break;
            case "stops":
                break;
            default:
                resigned.await();
        }
        candidacy.stopped();
    }

    @Override
    public void resign() {
        resigned.countDown();
    }

    @Override
    public boolean isLeader() {
        return false;
    }
}
