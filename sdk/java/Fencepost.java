import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * fencepost's SDK for Java 11 and newer on Linux: a single file, nothing to install. It turns a
 * lock into a program, which fencepost runs as a client under test (docs/protocol.md defines its
 * protocol):
 *
 * <pre>
 * final class MyLock implements Fencepost.Lock {
 *     public Fencepost.Grant acquire(String name, Duration ttl) { ... }
 *     public boolean release(String name) { ... }
 *
 *     public static void main(String[] arguments) throws Exception {
 *         Fencepost.run(client -> new MyLock(client.servers));
 *     }
 * }
 * </pre>
 *
 * It does the same for an elector (docs/your-elector.md), by {@link #runElector}.
 */
public final class Fencepost {
    // Of the protocol; 2 has `reset`.
    private static final int VERSION = 2;
    private static final int CONNECT_MS = 5_000;
    // A write that is delayed in the network must be able to arrive late.
    private static final int REPLY_MS = 120_000;
    private static final long NS_PER_S = 1_000_000_000L;
    // The exit code of an elector's process whose successor has to be started, and the variable that
    // names the file in which it leaves its state.
    private static final int LEAVES = 75;
    private static final String SUCCESSION = "FENCEPOST_SUCCESSION";
    // How long a client campaigns before its process gives up, in leases.
    private static final int CAMPAIGNS_FOR = 4;

    private Fencepost() {
    }

    /**
     * The lock under test. A {@link Failed} means that the request was certainly not carried out.
     * Any other exception means that it may have been: then this lock is closed, and a successor is
     * created.
     */
    public interface Lock {
        /** Returns the grant, for example {@code new Grant()}; null if it was certainly not granted. */
        Grant acquire(String name, Duration ttl) throws Exception;

        /** Returns false if it was not held. */
        boolean release(String name) throws Exception;

        /** Returns what acquire does. */
        default Grant extend(String name, Duration ttl) throws Exception {
            throw new Failed("this lock has no extend", "not-granted");
        }

        /** Closes its connections, and its session if it has one. */
        default void close() throws Exception {
        }
    }

    /** Makes the lock, once for each process; after a reset, again. */
    public interface Open {
        Lock open(Client client) throws Exception;
    }

    /** Elects a leader among candidates. Each elector runs once. */
    public interface Elector {
        /**
         * Campaigns, calls `started` of its candidacy once it leads, and returns when it leads no
         * more, after `stopped`. An exception ends the process of its candidate.
         */
        void run(Candidacy candidacy) throws Exception;

        /** Steps down: run returns within a lease. Another thread than that of run calls it. */
        default void resign() throws Exception {
            throw new Failed("the elector has no resign", "not-possible");
        }

        /** With `--stops checked`, the client asks this before each read and write of a leader. */
        default boolean isLeader() throws Exception {
            return true;
        }
    }

    /** Makes the elector, once for each candidacy. */
    public interface OpenElector {
        Elector open(Client client) throws Exception;
    }

    /**
     * One run of an elector. The identity is unique to it, `ttl` is the lease. Its methods may be
     * called from any thread.
     */
    public static final class Candidacy {
        public final String name;
        public final String identity;
        public final Duration ttl;
        private final Worker worker;
        private final Client client;
        private final Elector elector;
        // It leads, or run has ended; run has ended.
        private final CountDownLatch changed = new CountDownLatch(1);
        private final CountDownLatch ended = new CountDownLatch(1);
        private Grant grant;
        private boolean leads;
        private boolean resigns;
        // How run has ended; null before.
        private String why;

        private Candidacy(Client client, Elector elector, String name, Duration ttl) {
            this.worker = client.worker;
            this.client = client;
            this.elector = elector;
            this.name = name;
            this.ttl = ttl;
            identity = worker.node + "." + worker.process;
        }

        /** Reports that it leads from now on, until it says otherwise. */
        public void started() {
            started(new Grant());
        }

        /** Reports that it leads from now on, until the grant's deadline if that has one. */
        public synchronized void started(Grant given) {
            if (grant != null) {
                worker.broken("started was called twice in one run");
            }
            if (why != null) {
                worker.broken("started was called after run had returned");
            }
            leads = true;
            grant = given.asAsked ? given.withoutDeadline() : given;
            changed.countDown();
        }

        /** Reports a later deadline of a leader, by System.nanoTime(). */
        public synchronized void renewed(long nanoTime) {
            if (leads) {
                client.renewed(name, nanoTime);
            }
        }

        /** Reports that it leads no more. */
        public synchronized void stopped() {
            if (grant == null) {
                worker.broken("stopped was called before started");
            }
            stop("stopped was called");
        }

        private void stop(String reason) {
            if (leads) {
                leads = false;
                client.lost(name, reason);
            }
        }

        private void begin() {
            Thread thread = new Thread(this::run, "candidacy");
            thread.setDaemon(true);
            thread.start();
        }

        private void run() {
            Exception raised = null;
            try {
                elector.run(this);
            } catch (Exception error) {
                error.printStackTrace();
                raised = error;
            } catch (Error error) {
                error.printStackTrace();
                worker.broken("run raised " + error + ". That is a bug");
            }
            end(raised);
        }

        /** Ends the reign. An application that waits for the callback alone works on after an error. */
        private synchronized void end(Exception raised) {
            why = raised == null ? "run returned" : "run raised " + raised;
            if (raised == null && leads && !resigns) {
                worker.broken("run returned while it leads; it should call stopped first");
            }
            if (raised == null || !"callback".equals(worker.stops())) {
                stop(why);
            }
            ended.countDown();
            changed.countDown();
        }

        private synchronized Grant granted() {
            return grant;
        }

        private synchronized String why() {
            return why;
        }

        private void resign() throws Exception {
            synchronized (this) {
                resigns = true;
            }
            elector.resign();
        }
    }

    /** The lock that is made of an elector: a reign is a hold. */
    private static final class Election implements Lock {
        private final Client client;
        private final OpenElector open;
        private final boolean resigns;
        private Elector next;
        private Candidacy candidacy;

        Election(Client client, OpenElector open) throws Exception {
            this.client = client;
            this.open = open;
            next = open.open(client);
            resigns = next.getClass().getMethod("resign").getDeclaringClass() != Elector.class;
        }

        /** Campaigns until the elector leads. Each candidacy has an elector of its own. */
        @Override
        public Grant acquire(String name, Duration ttl) throws Exception {
            Candidacy old = candidacy;
            if (old != null && old.granted() != null && !within(old.ended, ttl)) {
                throw new Failed("run has not returned after stopped", "not-granted");
            }
            if (old == null || old.why() != null) {
                begin(name, ttl);
            }
            if (!within(candidacy.changed, ttl.multipliedBy(CAMPAIGNS_FOR))) {
                String text = "it does not lead after " + CAMPAIGNS_FOR + " leases";
                throw new Indeterminate(text, "timeout");
            }
            Grant grant = candidacy.granted();
            if (grant == null) {
                throw new Failed(candidacy.why(), "not-granted");
            }
            return grant;
        }

        private void begin(String name, Duration ttl) throws Failed {
            Elector elector = next;
            next = null;
            try {
                elector = elector == null ? open.open(client) : elector;
            } catch (Exception error) {
                throw new Failed("the elector cannot be made: " + error, "unreachable");
            }
            candidacy = new Candidacy(client, elector, name, ttl);
            candidacy.begin();
        }

        /** Resigns, and returns once run has returned. */
        @Override
        public boolean release(String name) throws Exception {
            if (candidacy.why() != null) {
                throw new Failed(candidacy.why(), "not-held");
            }
            candidacy.resign();
            if (!within(candidacy.ended, candidacy.ttl)) {
                throw new Indeterminate("run did not return within a lease after resign", "timeout");
            }
            return true;
        }

        /** Returns whether the elector says that it leads no more. One that cannot tell does not lead. */
        boolean denies() {
            try {
                return !candidacy.elector.isLeader();
            } catch (Exception error) {
                error.printStackTrace();
                return true;
            }
        }

        private static boolean within(CountDownLatch latch, Duration limit) throws Exception {
            return latch.await(limit.toNanos(), TimeUnit.NANOSECONDS);
        }
    }

    /**
     * A granting answer. Unless another deadline is given, the client may count on it from the call
     * on for the TTL that was asked for.
     */
    public static final class Grant {
        private Long token;
        private boolean asAsked = true;
        private Deadline deadline;
        private Long wakeups;

        /** The fencing token. */
        public Grant token(Long number) {
            token = number;
            return this;
        }

        /** How often the waiter was woken before it was granted the lock. */
        public Grant wakeups(long number) {
            wakeups = number;
            return this;
        }

        /** Until when the client may count on it, by System.nanoTime(). */
        public Grant until(long nanoTime) {
            return set(() -> nanoTime - System.nanoTime());
        }

        /** Until when the client may count on it, by the wall clock. */
        public Grant until(Instant instant) {
            return set(() -> Duration.between(Instant.now(), instant).toNanos());
        }

        /** The deadline is unknown, for example for a session that is kept alive. */
        public Grant withoutDeadline() {
            return set(null);
        }

        private Grant set(Deadline given) {
            asAsked = false;
            deadline = given;
            return this;
        }
    }

    /** The request was certainly not carried out. Kinds: not-granted, not-held, no-quorum, unreachable. */
    public static final class Failed extends Exception {
        private static final long serialVersionUID = 1;
        private final String kind;

        public Failed(String text) {
            this(text, null);
        }

        public Failed(String text, String kind) {
            super(text);
            this.kind = kind;
        }
    }

    /** The request may have been carried out. Other exceptions mean the same; this one has a kind. */
    public static final class Indeterminate extends Exception {
        private static final long serialVersionUID = 1;
        private final String kind;

        public Indeterminate(String text, String kind) {
            super(text);
            this.kind = kind;
        }
    }

    /** A server of the lock. */
    public static final class Server {
        public final String name;
        public final String host;
        public final int port;

        private Server(String name, List<?> address) {
            this.name = name;
            this.host = (String) address.get(0);
            this.port = ((Number) address.get(1)).intValue();
        }

        /** HOST:PORT. */
        @Override
        public String toString() {
            return host + ":" + port;
        }
    }

    /** The client that a lock belongs to; each process has its own. */
    public static final class Client {
        public final List<Server> servers;
        /** Strings, Longs, BigDecimals and Booleans. */
        public final Map<String, Object> options;
        public final String node;
        public final String seed;
        private final Worker worker;

        private Client(Worker worker) {
            this.worker = worker;
            List<Server> found = new ArrayList<>();
            for (Object name : list(worker.setup.get("servers"))) {
                found.add(worker.server((String) name));
            }
            servers = Collections.unmodifiableList(found);
            options = Collections.unmodifiableMap(map(worker.setup.get("options")));
            node = worker.node;
            seed = worker.setup.get("seed") + "/" + worker.process;
        }

        /** Returns an integer option, or otherwise if it was not given. */
        public int number(String option, int otherwise) {
            Object given = options.get(option);
            return given instanceof Number ? ((Number) given).intValue() : otherwise;
        }

        /**
         * Reports the hold of this lock as lost; null: every hold. May be called from any
         * thread.
         */
        public void lost(String name, String why) {
            worker.tell(this, name, hold -> worker.sayLost(hold, why));
        }

        /** Reports that the lease of this lock was extended in the background, until this nanoTime(). */
        public void renewed(String name, long nanoTime) {
            worker.tell(this, name, hold -> worker.sayRenewed(hold, nanoTime));
        }

        /** Marks a place where a test may stop this program, for example "replies-in-flight". */
        public void failpoint(String point) {
            worker.reach(point);
        }
    }

    /**
     * Runs a lock as a client of fencepost, and does not return. The promises are what it promises
     * in addition to exclusion, by name.
     */
    public static void run(Open open, String... promises) throws IOException {
        serve(open, false, promises);
    }

    /**
     * Runs an elector as a client of fencepost, and does not return. Only the end of this program ends
     * the threads and connections of an elector, so fencepost starts it again and again.
     */
    public static void runElector(OpenElector open) throws IOException {
        serve(client -> new Election(client, open), true);
    }

    private static void serve(Open open, boolean elects, String... promises) throws IOException {
        OutputStream out = new FileOutputStream(FileDescriptor.out);
        // Standard output is reserved for events: other output goes to standard error.
        System.setOut(System.err);
        Orders in = new Orders();
        Worker worker = null;
        String left = elects ? left() : "";
        if (!left.isEmpty()) {
            Map<String, Object> heritage = map(new Json(left).read());
            in.inherit((String) heritage.get("heard"));
            worker = new Worker(map(heritage.get("setup")), open, promises, in, out, elects);
            worker.succeed(heritage);
        }
        for (String line = in.next(); line != null; line = in.next()) {
            Map<String, Object> order = map(new Json(line).read());
            if (worker != null) {
                worker.order(order);
            } else {
                worker = new Worker(order, open, promises, in, out, elects);
                worker.start();
            }
        }
        if (worker != null) {
            worker.close();
        }
        System.exit(0);
    }

    /** Returns the state that a predecessor has left, and empties the file; "" without one. */
    private static String left() throws IOException {
        String path = System.getenv(SUCCESSION);
        String left = path == null ? "" : Files.readString(Path.of(path));
        if (!left.isEmpty()) {
            Files.writeString(Path.of(path), "");
        }
        return left;
    }

    /** Standard input, line by line. It keeps what is read and not used, for a successor. */
    private static final class Orders {
        private final InputStream in = new FileInputStream(FileDescriptor.in);
        private byte[] heard = new byte[0];

        /** Returns the next line; null at the end. */
        String next() throws IOException {
            byte[] chunk = new byte[1 << 16];
            int at = 0;
            while (true) {
                for (; at < heard.length; at++) {
                    if (heard[at] == '\n') {
                        String line = new String(heard, 0, at, StandardCharsets.UTF_8);
                        heard = Arrays.copyOfRange(heard, at + 1, heard.length);
                        return line;
                    }
                }
                int length = in.read(chunk);
                if (length < 0) {
                    return null;
                }
                heard = Arrays.copyOf(heard, at + length);
                System.arraycopy(chunk, 0, heard, at, length);
            }
        }

        void inherit(String encoded) {
            heard = Base64.getDecoder().decode(encoded);
        }

        /** Returns what is read and not used, in base64. */
        String left() {
            return Base64.getEncoder().encodeToString(heard);
        }
    }

    /** Returns the time until a deadline, in ns by its own clock. */
    private interface Deadline {
        long leftNs();
    }

    private static final class Hold {
        final String id;
        final String name;
        final Long token;
        Deadline deadline;
        boolean lost;

        Hold(String id, String name, Long token, Deadline deadline) {
            this.id = id;
            this.name = name;
            this.token = token;
            this.deadline = deadline;
        }
    }

    /** Reads ops and writes events. */
    private static final class Worker {
        private final Open open;
        private final String[] promises;
        private final Orders orders;
        private final OutputStream out;
        private final boolean elects;
        private final Set<String> armed = new HashSet<>();
        private final Map<String, Hold> holds = new LinkedHashMap<>();
        private final List<Consumer<Hold>> late = new ArrayList<>();
        private Map<String, Object> setup;
        private String node;
        private String guard;
        private long originNs;
        private long process;
        private long count;
        // The lock that is being acquired. Reports about it wait for the answer.
        private String asked;
        private Hold granted;
        private Client client;
        private Lock lock;
        private Store store;

        Worker(Map<String, Object> setup, Open open, String[] promises, Orders orders,
                OutputStream out, boolean elects) {
            this.open = open;
            this.promises = promises;
            this.orders = orders;
            this.out = out;
            this.elects = elects;
            begin(setup);
        }

        /** Takes the setup of a test, and forgets what belongs to the one before. */
        private synchronized void begin(Map<String, Object> next) {
            setup = next;
            armed.clear();
            holds.clear();
            late.clear();
            count = 0;
            node = (String) setup.get("node");
            guard = (String) setup.get("guard");
            originNs = number(setup, "origin_ns");
            process = number(setup, "process");
        }

        Server server(String name) {
            return new Server(name, list(map(setup.get("addresses")).get(name)));
        }

        /** Reports readiness once the lock is made, so that no acquire pays for it. */
        void start() {
            renew();
            Map<String, Object> ready = answer("ready");
            ready.put("version", version());
            ready.put("pid", ProcessHandle.current().pid());
            ready.put("generates", false);
            ready.put("extends", extend());
            if (promises.length > 0) {
                ready.put("promises", List.of(promises));
            }
            if (elects) {
                ready.put("version", 1); // a reset would not end its threads
                ready.put("extends", false);
                ready.put("elector", true);
                ready.put("resigns", lock == null || ((Election) lock).resigns);
                ready.put("restarts", true);
            }
            say(ready);
        }

        String stops() {
            return (String) setup.get("stops");
        }

        /** Returns the newest version of the protocol that both sides speak. */
        private int version() {
            return list(setup.get("versions")).contains((long) VERSION) ? VERSION : 1;
        }

        /** Closes the lock, forgets everything about it, and makes the next one: another test begins. */
        private void reset(Map<String, Object> next) {
            close();
            begin(next);
            start();
        }

        /** Returns whether the lock has an extend; true while that is unknown. */
        private boolean extend() {
            Class<?> of = lock == null ? Worker.class : lock.getClass();
            try {
                of = of.getMethod("extend", String.class, Duration.class).getDeclaringClass();
            } catch (NoSuchMethodException error) {
                return true;
            }
            return of != Lock.class;
        }

        /**
         * Makes the store and the lock of this process. The servers are up when a test begins. Later
         * they may be cut off just then, and the lock is made again at the next acquire.
         */
        private void renew() {
            store = new Store(server((String) setup.get("storage")));
            lock = null;
            try {
                opened();
            } catch (Exception error) {
                error.printStackTrace();
                if (process < number(setup, "stride")) {
                    broken("the lock cannot be made: " + error);
                }
            }
        }

        private Lock opened() throws Exception {
            if (lock == null) {
                Client made = new Client(this);
                synchronized (this) {
                    client = made;
                }
                lock = open.open(made);
            }
            return lock;
        }

        void order(Map<String, Object> order) {
            String control = (String) order.get("control");
            if (order.containsKey("f")) {
                apply((String) order.get("f"), map(order.get("value")));
            } else if ("clock".equals(control)) {
                tellClock();
            } else if ("reset".equals(control)) {
                reset(order);
            } else if ("leave".equals(control)) {
                leave();
            } else {
                synchronized (this) {
                    if ("arm".equals(control)) {
                        armed.add((String) order.get("point"));
                    } else if ("disarm".equals(control)) {
                        armed.remove(order.get("point"));
                    }
                }
            }
        }

        /** Returns how far the wall clock is ahead of the monotonic one: bounds, in ns. */
        private void tellClock() {
            long before = System.nanoTime();
            Instant shown = Instant.now();
            long after = System.nanoTime();
            long wall = shown.getEpochSecond() * NS_PER_S + shown.getNano();
            Map<String, Object> answer = answer("clock");
            answer.put("low_ns", wall - after);
            answer.put("high_ns", wall - before);
            say(answer);
        }

        /** Does one op, from its invocation to its completion. */
        private void apply(String f, Map<String, Object> value) {
            if ((f.equals("read") || f.equals("write")) && stopped(find(value))) {
                say(answer("stopped"));
                return;
            }
            if (f.equals("write")) {
                complete(value);
            }
            event("invoke", f, value, null);
            Map<String, Object> answer = new LinkedHashMap<>(value);
            try {
                act(f, answer);
            } catch (Exception error) {
                // A read that got no reply changed nothing.
                boolean info = !f.equals("read") && !(error instanceof Failed);
                event(info ? "info" : "fail", f, value, error);
                if (info && elects) {
                    leave();
                } else if (info) {
                    close();
                    process += number(setup, "stride");
                    renew();
                }
                return;
            }
            if (f.equals("acquire")) {
                hold(answer);
                reach("acquired");
            } else {
                event("ok", f, answer, null);
            }
        }

        private void act(String f, Map<String, Object> value) throws Exception {
            switch (f) {
                case "acquire":
                    acquire(value);
                    break;
                case "extend":
                    extend(value);
                    break;
                case "release":
                    release(value);
                    break;
                case "read":
                    read(value);
                    break;
                case "write":
                    write(value);
                    break;
                default:
                    throw new Failed("this client has no " + f, "not-held");
            }
        }

        /** Adds to a write a value, unique in the run, and the token of its hold. */
        private void complete(Map<String, Object> value) {
            Hold hold = find(value);
            value.put("value", node + "." + process + "." + ++count);
            value.put("token", hold == null ? null : hold.token);
        }

        private synchronized Hold find(Map<String, Object> value) {
            return holds.get((String) value.get("hold"));
        }

        private Hold held(Map<String, Object> value) throws Failed {
            Hold hold = find(value);
            if (hold == null) {
                throw new Failed("this process has no hold " + value.get("hold"), "not-held");
            }
            return hold;
        }

        private void acquire(Map<String, Object> value) throws Exception {
            Lock ready;
            try {
                ready = opened();
            } catch (Exception error) {
                throw new Failed("the lock cannot be made: " + error, "unreachable");
            }
            String name = (String) value.get("lock");
            Duration ttl = Duration.ofNanos(number(value, "ttl"));
            synchronized (this) {
                asked = name;
                late.clear();
            }
            long until = System.nanoTime() + ttl.toNanos();
            Grant grant = certain("not-granted", () -> ready.acquire(name, ttl));
            if (guard.startsWith("fenced") && grant.token == null) {
                broken("acquire granted without a token, which guard " + guard + " needs");
            }
            Deadline deadline = grant.asAsked ? new Grant().until(until).deadline : grant.deadline;
            granted = new Hold(process + "-" + ++count, name, grant.token, deadline);
            value.put("token", grant.token);
            value.put("deadline", time(deadline));
            value.put("hold", granted.id);
            if (grant.asAsked) {
                value.put("assumed", true);
            }
            if (grant.wakeups != null) {
                value.put("wakeups", grant.wakeups);
            }
        }

        /** Records a hold, and writes the lock's reports about it. */
        private synchronized void hold(Map<String, Object> answer) {
            event("ok", "acquire", answer, null);
            holds.put(granted.id, granted);
            asked = null;
            late.forEach(say -> say.accept(granted));
        }

        private void extend(Map<String, Object> value) throws Exception {
            Hold hold = held(value);
            Duration ttl = Duration.ofNanos(number(value, "ttl"));
            long until = System.nanoTime() + ttl.toNanos();
            Grant grant = certain("not-held", () -> lock.extend(hold.name, ttl));
            synchronized (this) {
                hold.deadline = grant.asAsked ? new Grant().until(until).deadline : grant.deadline;
            }
            value.put("deadline", time(hold.deadline));
            if (grant.asAsked) {
                value.put("assumed", true);
            }
        }

        private void release(Map<String, Object> value) throws Exception {
            Hold hold = held(value);
            synchronized (this) {
                holds.remove(hold.id);
            }
            certain("not-held", () -> lock.release(hold.name) ? new Grant() : null);
        }

        private void read(Map<String, Object> value) throws Exception {
            List<?> found = list(store.call("HMGET", key(value), "value", "version"));
            Object version = found.get(1);
            value.put("value", found.get(0));
            value.put("version", version == null ? 0 : Long.parseLong((String) version));
        }

        private void write(Map<String, Object> value) throws Exception {
            Object token = value.get("token");
            if (guard.equals("deadline")) {
                lookAtTheClock(find(value));
            }
            reach("before-write");
            List<?> said = list(store.call(
                "EVAL", setup.get("write_script"), 1, key(value), guard,
                value.get("value"), value.get("version"), token == null ? "" : token, ""));
            if ((Long) said.get(0) == 0) {
                throw new Failed("guard " + guard + " compared with " + said.get(1), "refused");
            }
            value.put("stored", Long.parseLong(said.get(1).toString()));
        }

        /** Refuses to write if the lease has expired. A pause after this check goes unnoticed. */
        private synchronized void lookAtTheClock(Hold hold) throws Failed {
            if (hold == null || hold.lost) {
                throw new Failed("the client knows that it has lost the lock", "refused");
            }
            if (hold.deadline != null && hold.deadline.leftNs() <= 0) {
                throw new Failed("the client's lease has expired, by its own clock", "refused");
            }
        }

        /** Returns whether the reign of a hold has ended, for an application that stops its work so. */
        private boolean stopped(Hold hold) {
            if (!elects || hold == null) {
                return false;
            }
            synchronized (this) {
                if (hold.lost || "callback".equals(stops())) {
                    return hold.lost;
                }
                if (hold.deadline != null && hold.deadline.leftNs() <= 0) {
                    return true;
                }
            }
            return "checked".equals(stops()) && ((Election) lock).denies();
        }

        /** Ends this program, and with it the threads of its elector, and lets its successor begin. */
        private synchronized void leave() {
            String path = System.getenv(SUCCESSION);
            if (path == null) {
                broken("nothing starts the successor of this program: " + SUCCESSION + " is not set");
            }
            event("invoke", "close", Collections.emptyMap(), null);
            Map<String, Object> next = new LinkedHashMap<>(setup);
            next.put("process", process + number(setup, "stride"));
            Map<String, Object> left = new LinkedHashMap<>();
            left.put("setup", next);
            left.put("predecessor", process);
            left.put("heard", orders.left());
            left.put("armed", new ArrayList<>(armed));
            try {
                Files.writeString(Path.of(path), Json.text(left));
            } catch (IOException error) {
                broken("the state of this process cannot be left to its successor: " + error);
            }
            Runtime.getRuntime().halt(LEAVES); // without the hooks of a library
        }

        /** Takes over from the predecessor, whose close is complete now. */
        void succeed(Map<String, Object> heritage) {
            Map<String, Object> answer = answer("successor");
            answer.put("pid", ProcessHandle.current().pid());
            say(answer);
            process = number(heritage, "predecessor");
            event("ok", "close", Collections.emptyMap(), null);
            process = number(setup, "process");
            list(heritage.get("armed")).forEach(point -> armed.add((String) point));
            renew();
        }

        /** Closes the lock's connections and the store's, as an op of the current process. */
        void close() {
            Map<String, Object> nothing = Collections.emptyMap();
            synchronized (this) {
                event("invoke", "close", nothing, null);
                // Later reports of the lock have no process.
                client = null;
                asked = null;
                holds.clear();
            }
            Exception raised = null;
            try {
                if (lock != null) {
                    lock.close();
                }
            } catch (Exception error) {
                raised = error;
            }
            store.close();
            event(raised == null ? "ok" : "info", "close", nothing, raised);
        }

        /** Writes a report of the lock. One about a hold being acquired follows its ok. */
        synchronized void tell(Client from, String name, Consumer<Hold> say) {
            if (from != client) {
                return;
            }
            for (Hold hold : holds.values()) {
                if (name == null || name.equals(hold.name)) {
                    say.accept(hold);
                }
            }
            if (asked != null && (name == null || name.equals(asked))) {
                late.add(say);
            }
        }

        void sayLost(Hold hold, String why) {
            if (!hold.lost) {
                hold.lost = true;
                event("info", "lost", about(hold), new Failed(why, "lost"));
            }
        }

        void sayRenewed(Hold hold, long nanoTime) {
            hold.deadline = new Grant().until(nanoTime).deadline;
            Map<String, Object> value = about(hold);
            value.put("deadline", time(hold.deadline));
            event("info", "renewed", value, null);
        }

        private static Map<String, Object> about(Hold hold) {
            Map<String, Object> value = new LinkedHashMap<>();
            value.put("lock", hold.name);
            value.put("hold", hold.id);
            return value;
        }

        /** Stops here if a test has ordered it, until the test resumes the program. */
        synchronized void reach(String point) {
            if (!armed.remove(point)) {
                return;
            }
            Map<String, Object> answer = answer("point");
            answer.put("point", point);
            say(answer);
            String stop = "kill -STOP " + ProcessHandle.current().pid();
            try {
                new ProcessBuilder("sh", "-c", stop).start().waitFor();
            } catch (IOException | InterruptedException error) {
                throw new IllegalStateException("this program cannot stop itself", error);
            }
        }

        /** Converts a deadline to a time of the test, in ns; null without one. */
        private Long time(Deadline deadline) {
            return deadline == null ? null : System.nanoTime() - originNs + deadline.leftNs();
        }

        private synchronized void event(
                String type, String f, Map<String, Object> value, Exception error) {
            Map<String, Object> event = new LinkedHashMap<>();
            // System.nanoTime is CLOCK_MONOTONIC on Linux.
            event.put("time", System.nanoTime() - originNs);
            event.put("process", process);
            event.put("type", type);
            event.put("f", f);
            event.put("value", value);
            event.put("node", node);
            if (error != null) {
                event.put("error", List.of(kind(error), text(error)));
            }
            say(event);
        }

        /** Exits: the program itself is faulty, not the lock that it calls. */
        private void broken(String why) {
            Map<String, Object> answer = answer("broken");
            answer.put("why", why);
            say(answer);
            System.exit(1);
        }

        /** Writes an answer, whose first field is `control`. */
        private static Map<String, Object> answer(String control) {
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("control", control);
            return answer;
        }

        private synchronized void say(Map<String, Object> message) {
            try {
                out.write((Json.text(message) + "\n").getBytes(StandardCharsets.UTF_8));
            } catch (IOException error) {
                System.exit(1);
            }
        }
    }

    private interface Asked {
        Grant answer() throws Exception;
    }

    /** Returns the lock's grant. Failed if it refused; its own Failed gets a kind. */
    private static Grant certain(String kind, Asked asked) throws Exception {
        try {
            Grant grant = asked.answer();
            if (grant == null) {
                throw new Failed("the lock said no");
            }
            return grant;
        } catch (Failed error) {
            throw error.kind == null ? new Failed(error.getMessage(), kind) : error;
        }
    }

    private static String kind(Exception error) {
        if (error instanceof Failed) {
            return ((Failed) error).kind;
        }
        return error instanceof Indeterminate ? ((Indeterminate) error).kind : "raised";
    }

    private static String text(Exception error) {
        boolean ours = error instanceof Failed || error instanceof Indeterminate;
        return String.valueOf(ours ? error.getMessage() : error);
    }

    /** Returns the key of a resource; a test with one lock has a fixed one. */
    private static String key(Map<String, Object> value) {
        Object resource = value.get("resource");
        return "resource:" + (resource.equals("account") ? "register" : resource);
    }

    private static long number(Map<String, Object> fields, String name) {
        return ((Number) fields.get(name)).longValue();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return value == null ? new LinkedHashMap<>() : (Map<String, Object>) value;
    }

    private static List<?> list(Object value) {
        return (List<?>) value;
    }

    /** The resource: a register in Redis, over a minimal implementation of RESP2. */
    private static final class Store {
        private final Server server;
        private Socket socket;
        private InputStream in;

        Store(Server server) {
            this.server = server;
        }

        /** Returns the reply: a String, a Long, a List of these, or null. */
        Object call(Object... command) throws Failed, Indeterminate {
            connect();
            try {
                send(command);
                return receive();
            } catch (IOException error) {
                close();
                throw new Indeterminate("no reply of the store: " + error, "timeout");
            }
        }

        private void connect() throws Failed {
            if (socket != null) {
                return;
            }
            try {
                socket = new Socket();
                socket.setTcpNoDelay(true);
                socket.setSoTimeout(REPLY_MS);
                socket.connect(new InetSocketAddress(server.host, server.port), CONNECT_MS);
                in = new BufferedInputStream(socket.getInputStream());
            } catch (IOException error) {
                close();
                throw new Failed("no connection to the store: " + error, "unreachable");
            }
        }

        private void send(Object... command) throws IOException {
            ByteArrayOutputStream request = new ByteArrayOutputStream();
            request.write(("*" + command.length + "\r\n").getBytes(StandardCharsets.UTF_8));
            for (Object part : command) {
                byte[] bytes = part.toString().getBytes(StandardCharsets.UTF_8);
                request.write(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.UTF_8));
                request.write(bytes);
                request.write('\r');
                request.write('\n');
            }
            socket.getOutputStream().write(request.toByteArray());
        }

        private Object receive() throws IOException, Failed {
            String line = line();
            String rest = line.substring(1);
            switch (line.charAt(0)) {
                case '+':
                    return rest;
                case '-':
                    throw new Failed(rest, "refused");
                case ':':
                    return Long.valueOf(rest);
                case '$':
                    return bulk(Integer.parseInt(rest));
                case '*':
                    List<Object> parts = new ArrayList<>();
                    for (int left = Integer.parseInt(rest); left > 0; left--) {
                        parts.add(receive());
                    }
                    return parts;
                default:
                    throw new IOException("not RESP: " + line);
            }
        }

        private String bulk(int length) throws IOException {
            if (length < 0) {
                return null;
            }
            byte[] bytes = in.readNBytes(length);
            line();
            return new String(bytes, StandardCharsets.UTF_8);
        }

        private String line() throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int next = in.read(); next != '\r'; next = in.read()) {
                if (next < 0) {
                    throw new EOFException("the server closed the connection");
                }
                line.write(next);
            }
            in.read();
            return line.toString(StandardCharsets.UTF_8);
        }

        void close() {
            if (socket != null) {
                try {
                    socket.close();
                } catch (IOException ignored) {
                    // It is closed either way.
                }
                socket = null;
            }
        }
    }

    /** JSON as Maps, Lists, Strings, Longs, BigDecimals, Booleans and null. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object read() {
            switch (next()) {
                case '{':
                    return object();
                case '[':
                    return array();
                case '"':
                    return string();
                default:
                    return word();
            }
        }

        /** Returns the next character other than white space, without consuming it. */
        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private boolean takes(char wanted) {
            boolean there = next() == wanted;
            at += there ? 1 : 0;
            return there;
        }

        private Map<String, Object> object() {
            Map<String, Object> fields = new LinkedHashMap<>();
            at++;
            while (!takes('}')) {
                takes(',');
                next();
                String name = string();
                takes(':');
                fields.put(name, read());
            }
            return fields;
        }

        private List<Object> array() {
            List<Object> parts = new ArrayList<>();
            at++;
            while (!takes(']')) {
                takes(',');
                parts.add(read());
            }
            return parts;
        }

        private String string() {
            StringBuilder found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char one = text.charAt(at);
                found.append(one == '\\' ? escaped() : one);
            }
            at++;
            return found.toString();
        }

        private char escaped() {
            char one = text.charAt(++at);
            if (one == 'u') {
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
            }
            int place = "nrtbf".indexOf(one);
            return place < 0 ? one : "\n\r\t\b\f".charAt(place);
        }

        private Object word() {
            int start = at;
            while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
                at++;
            }
            String word = text.substring(start, at);
            switch (word) {
                case "null":
                    return null;
                case "true":
                    return true;
                case "false":
                    return false;
                default:
                    boolean whole = word.matches("-?\\d{1,18}");
                    return whole ? (Object) Long.valueOf(word) : new BigDecimal(word);
            }
        }

        static String text(Object value) {
            if (value instanceof Map) {
                List<String> fields = new ArrayList<>();
                map(value).forEach((name, field) -> fields.add(quoted(name) + ":" + text(field)));
                return "{" + String.join(",", fields) + "}";
            }
            if (value instanceof List) {
                List<String> parts = new ArrayList<>();
                list(value).forEach(part -> parts.add(text(part)));
                return "[" + String.join(",", parts) + "]";
            }
            return value instanceof String ? quoted((String) value) : String.valueOf(value);
        }

        private static String quoted(String text) {
            StringBuilder quoted = new StringBuilder("\"");
            for (char one : text.toCharArray()) {
                if (one == '"' || one == '\\') {
                    quoted.append('\\').append(one);
                } else if (one < ' ') {
                    quoted.append(String.format("\\u%04x", (int) one));
                } else {
                    quoted.append(one);
                }
            }
            return quoted.append('"').toString();
        }
    }
}
