import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.UUID;

/**
 * A lock on one Redis server, over a socket of its own; a refused client asks again every 50 ms, for
 * two leases. The first argument names its defect. `spins`: a thread is at work for a while, beside
 * the first acquire of client-2. `waits`: it waits before it asks.
 */
public final class Lock implements Fencepost.Lock {
    private static final long SPINS_NS = 1_400_000_000L;
    private static final String OWNED =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    private static String defect = "none";

    private final Fencepost.Server server;
    private final String node;
    private Socket socket;
    private BufferedReader answers;
    private String secret;

    private Lock(Fencepost.Client client) {
        server = client.servers.get(0);
        node = client.node;
    }

    public static void main(String[] arguments) throws IOException {
        defect = arguments[0];
        Fencepost.run(Lock::new);
    }

    @Override
    public Fencepost.Grant acquire(String name, Duration ttl) throws Exception {
        if (defect.equals("spins") && node.equals("client-2")) {
            defect = "none";
            Thread spins = new Thread(Lock::spin);
            spins.setDaemon(true);
            spins.start();
        }
        if (defect.equals("waits")) {
            Thread.sleep(200);
        }
        secret = UUID.randomUUID().toString();
        long until = System.nanoTime() + 2 * ttl.toNanos();
        while (System.nanoTime() < until) {
            if (ask("SET", name, secret, "NX", "PX", "" + ttl.toMillis()).equals("+OK")) {
                return new Fencepost.Grant();
            }
            Thread.sleep(50);
        }
        return null;
    }

    private static void spin() {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        while (clock.getCurrentThreadCpuTime() < SPINS_NS) {
            continue;
        }
    }

    @Override
    public boolean release(String name) throws Exception {
        return defect.equals("no-owner-check") ? ask("DEL", name).equals(":1")
            : ask("EVAL", OWNED, "1", name, secret).equals(":1");
    }

    private String ask(String... words) throws Exception {
        if (socket == null) {
            connect();
        }
        StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
        for (String word : words) {
            request.append("$" + word.length() + "\r\n" + word + "\r\n");
        }
        try {
            socket.getOutputStream().write(request.toString().getBytes(StandardCharsets.US_ASCII));
            String answer = answers.readLine();
            if (answer == null) {
                throw new IOException("the connection was closed");
            }
            return answer;
        } catch (IOException error) {
            close();
            throw error;
        }
    }

    private void connect() throws Exception {
        Socket made = new Socket();
        try {
            made.connect(new InetSocketAddress(server.host, server.port), 500);
            made.setSoTimeout(500);
            made.setTcpNoDelay(true);
        } catch (IOException error) {
            made.close();
            throw new Fencepost.Failed(error.getMessage(), "unreachable");
        }
        socket = made;
        answers = new BufferedReader(new InputStreamReader(made.getInputStream()));
    }

    @Override
    public void close() throws IOException {
        if (socket != null) {
            socket.close();
            socket = null;
        }
    }
}
