import java.io.IOException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListener;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.state.ConnectionState;

/**
 * Curator's LeaderSelector, which leads for as long as its listener's takeLeadership runs. Its
 * documentation recommends LeaderSelectorListenerAdapter, which has takeLeadership interrupted when
 * the connection is SUSPENDED or LOST. With the option `listens=no` the listener ignores both. The
 * library reports no deadline and no token.
 */
public final class Selector implements Fencepost.Elector {
    private final Session session;
    private final boolean listens;
    private volatile LeaderSelector selector;

    private Selector(Fencepost.Client client) {
        session = new Session(client);
        listens = !"no".equals(client.options.get("listens"));
    }

    public static void main(String[] arguments) throws IOException {
        Fencepost.runElector(Selector::new);
    }

    @Override
    public void run(Fencepost.Candidacy candidacy) throws Exception {
        LeaderSelectorListener listener = listens ? new Listening(candidacy) : new Deaf(candidacy);
        try (CuratorFramework client = session.start(candidacy);
                LeaderSelector made =
                    new LeaderSelector(client, Session.path(candidacy), listener)) {
            selector = made;
            made.setId(candidacy.identity);
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
        return selector != null && selector.hasLeadership();
    }

    /** Leads until the session of this candidate is told to end, or Curator interrupts it. */
    private void lead(Fencepost.Candidacy candidacy) throws InterruptedException {
        candidacy.started();
        try {
            session.awaitEnd();
        } finally {
            candidacy.stopped();
            session.end();
        }
    }

    private final class Listening extends LeaderSelectorListenerAdapter {
        private final Fencepost.Candidacy candidacy;

        Listening(Fencepost.Candidacy candidacy) {
            this.candidacy = candidacy;
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws InterruptedException {
            lead(candidacy);
        }
    }

    private final class Deaf implements LeaderSelectorListener {
        private final Fencepost.Candidacy candidacy;

        Deaf(Fencepost.Candidacy candidacy) {
            this.candidacy = candidacy;
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws InterruptedException {
            lead(candidacy);
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {
            // It does not listen.
        }
    }
}
