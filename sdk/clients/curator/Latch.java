import java.io.IOException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;

/**
 * Curator's LeaderLatch, with the listener that its documentation describes. The library reports no
 * deadline and no token.
 */
public final class Latch implements Fencepost.Elector {
    private final Session session;
    private volatile LeaderLatch latch;

    private Latch(Fencepost.Client client) {
        session = new Session(client);
    }

    public static void main(String[] arguments) throws IOException {
        Fencepost.runElector(Latch::new);
    }

    @Override
    public void run(Fencepost.Candidacy candidacy) throws Exception {
        try (CuratorFramework client = session.start(candidacy);
                LeaderLatch made =
                    new LeaderLatch(client, Session.path(candidacy), candidacy.identity)) {
            made.addListener(new LeaderLatchListener() {
                private boolean led;

                @Override
                public void isLeader() {
                    if (!led) { // a latch may lead again before its candidate has closed it
                        led = true;
                        candidacy.started();
                    }
                }

                @Override
                public void notLeader() {
                    if (led) {
                        candidacy.stopped();
                        session.end();
                    }
                }
            });
            latch = made;
            made.start();
            session.awaitEnd();
        }
    }

    @Override
    public void resign() {
        session.end();
    }

    @Override
    public boolean isLeader() {
        return latch != null && latch.hasLeadership();
    }
}
