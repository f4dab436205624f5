import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A client of fencepost's on the JVM: ops in, events out, as docs/protocol.md has it. */
public final class Worker {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Certainly not ({@code info} false), or perhaps. */
    private static final class Failure extends Exception {
        private static final long serialVersionUID = 1;
        final boolean info;
        final String kind;

        Failure(boolean info, String kind, String text) {
            super(text);
            this.info = info;
            this.kind = kind;
        }
    }

    private static final class Hold {
        final String lock;
        final Recipe.Mutex mutex;
        final Long token;
        final int notices;
        boolean lost;

        Hold(String lock, Recipe.Mutex mutex, Long token, int notices) {
            this.lock = lock;
            this.mutex = mutex;
            this.token = token;
            this.notices = notices;
        }
    }

    private final OutputStream out = new FileOutputStream(FileDescriptor.out);
    private final JsonNode setup;
    private final Set<String> armed = new HashSet<>();
    private final Map<String, Hold> holds = new HashMap<>();
    private long process;
    private int count;
    private volatile int notices;
    private Recipe recipe;
    private Store store;

    private Worker(JsonNode setup) {
        this.setup = setup;
        this.process = setup.get("process").asLong();
        open();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Worker worker = new Worker(JSON.readTree(in.readLine()));
        Recipe.warmUp(worker.hosts(), worker.requestMs(), worker.setup.get("node").asText());
        ObjectNode ready = JSON.createObjectNode();
        ready.put("control", "ready").put("pid", ProcessHandle.current().pid());
        worker.say(ready.put("generates", false));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            worker.order(JSON.readTree(line));
        }
        worker.close();
        System.exit(0);
    }

    private void order(JsonNode order) throws IOException {
        if (order.has("f")) {
            apply(order.get("f").asText(), (ObjectNode) order.get("value"));
        } else if (order.get("control").asText().equals("arm")) {
            armed.add(order.get("point").asText());
        } else if (order.get("control").asText().equals("disarm")) {
            armed.remove(order.get("point").asText());
        } else if (order.get("control").asText().equals("clock")) {
            tellClock();
        }
    }

    /** How far the wall clock is ahead of the monotonic one: bounds, in ns. */
    private void tellClock() {
        long before = System.nanoTime();
        Instant shown = Instant.now();
        long after = System.nanoTime();
        long wall = shown.getEpochSecond() * 1_000_000_000L + shown.getNano();
        ObjectNode answer = JSON.createObjectNode().put("control", "clock");
        say(answer.put("low_ns", wall - after).put("high_ns", wall - before));
    }

    private String hosts() {
        StringBuilder hosts = new StringBuilder();
        for (JsonNode server : setup.get("servers")) {
            JsonNode address = setup.get("addresses").get(server.asText());
            hosts.append(hosts.length() == 0 ? "" : ",");
            hosts.append(address.get(0).asText()).append(':').append(address.get(1).asInt());
        }
        return hosts.toString();
    }

    private int requestMs() {
        return setup.get("options").get("node_timeout_ms").asInt();
    }

    private void open() {
        long mine = process;
        recipe = new Recipe(hosts(), requestMs(), why -> lose(mine, why));
        JsonNode storage = setup.get("addresses").get(setup.get("storage").asText());
        store = new Store(storage.get(0).asText(), storage.get(1).asInt());
    }

    private void apply(String f, ObjectNode asked) throws IOException {
        ObjectNode value = f.equals("write") ? complete(asked) : asked;
        event("invoke", f, value, null);
        try {
            ObjectNode answer = value.deepCopy();
            Hold granted = null;
            switch (f) {
                case "acquire":
                    granted = acquire(answer);
                    break;
                case "release":
                    release(answer);
                    break;
                case "read":
                    read(answer);
                    break;
                case "write":
                    write(answer);
                    break;
                default:
                    throw new Failure(false, "not-held", "Curator's mutex has no " + f);
            }
            if (granted == null) {
                event("ok", f, answer, null);
            } else {
                grant(granted, answer);
                reach("acquired");
            }
        } catch (Failure error) {
            // A read that got no reply changed nothing.
            boolean info = error.info && !f.equals("read");
            event(info ? "info" : "fail", f, value, error);
            if (info) {
                succeed();
            }
        }
    }

    /** Become one's own successor: nothing is left of the process that is gone. */
    private void succeed() {
        close();
        synchronized (this) {
            holds.clear();
            process += setup.get("stride").asLong();
        }
        open();
    }

    /** End Curator's session and the connections, as an op of the current process. */
    private void close() {
        event("invoke", "close", JSON.createObjectNode(), null);
        Failure failure = null;
        for (Runnable part : List.<Runnable>of(recipe::close, store::close)) {
            try {
                part.run();
            } catch (RuntimeException error) {
                failure = new Failure(true, "raised", error.toString());
            }
        }
        event(failure == null ? "ok" : "info", "close", JSON.createObjectNode(), failure);
    }

    private ObjectNode complete(ObjectNode asked) {
        Hold hold = held(asked);
        String value = setup.get("node").asText() + "." + process + "." + ++count;
        return asked.put("value", value).put("token", hold == null ? null : hold.token);
    }

    private Hold held(ObjectNode value) {
        synchronized (this) {
            return holds.get(value.path("hold").asText());
        }
    }

    /** Say that it is held; and that it is lost already, where Curator said so meanwhile. */
    private void grant(Hold hold, ObjectNode answer) {
        synchronized (this) {
            holds.put(answer.get("hold").asText(), hold);
            event("ok", "acquire", answer, null);
            if (notices != hold.notices) {
                lose(process, "Curator's connection was unsure when the lock was granted");
            }
        }
    }

    private Hold acquire(ObjectNode value) throws Failure {
        int ttlMs = (int) (value.get("ttl").asLong() / 1_000_000);
        long waitMs = setup.get("options").get("wait_ms").asLong();
        String lock = value.get("lock").asText();
        Recipe.Mutex mutex;
        Long token;
        int heard;
        try {
            mutex = recipe.acquire(lock, ttlMs, waitMs);
            // Before it is seen that the znode is there: what is noticed from now on counts.
            heard = notices;
            token = mutex == null ? null : recipe.token(mutex);
        } catch (Exception error) {
            throw new Failure(true, "timeout", error.toString());
        }
        if (mutex == null) {
            throw new Failure(false, "not-granted", "not its turn within " + waitMs + " ms");
        }
        // Curator tells its user nothing of how long the session lives.
        value.put("token", token).putNull("deadline").put("hold", process + "-" + ++count);
        return new Hold(lock, mutex, token, heard);
    }

    private void release(ObjectNode value) throws Failure {
        Hold hold;
        synchronized (this) {
            hold = holds.remove(value.path("hold").asText());
        }
        if (hold == null) {
            throw new Failure(false, "not-held", "this process has no such hold");
        }
        try {
            hold.mutex.release();
        } catch (IllegalMonitorStateException error) {
            throw new Failure(false, "not-held", error.getMessage());
        } catch (Exception error) {
            throw new Failure(true, "timeout", error.toString());
        }
    }

    private void read(ObjectNode value) throws Failure {
        List<?> found = (List<?>) ask("HMGET", key(value), "value", "version");
        Object version = found.get(1);
        value.put("value", (String) found.get(0));
        value.put("version", version == null ? 0 : Long.parseLong((String) version));
    }

    private void write(ObjectNode value) throws Failure {
        String guard = setup.get("guard").asText();
        Hold hold = held(value);
        if (guard.equals("deadline") && (hold == null || hold.lost)) {
            throw new Failure(false, "refused", "the client knows that it has lost the lock");
        }
        if (guard.equals("fenced") && value.get("token").isNull()) {
            throw new Failure(false, "refused", "the grant carries no token");
        }
        reach("before-write");
        String token = value.get("token").isNull() ? "" : value.get("token").asText();
        List<?> answer = (List<?>) ask(
            "EVAL", setup.get("write_script").asText(), 1, key(value), guard,
            value.get("value").asText(), value.get("version").asLong(), token, "");
        if ((Long) answer.get(0) == 0) {
            throw new Failure(false, "refused", "guard " + guard + " compared with " + answer.get(1));
        }
        value.put("stored", Long.parseLong(answer.get(1).toString()));
    }

    /** Where the resource of a test with one lock lies, and where any other does. */
    private static String key(ObjectNode value) {
        String resource = value.get("resource").asText();
        return "resource:" + (resource.equals("account") ? "register" : resource);
    }

    private Object ask(Object... command) throws Failure {
        try {
            return store.call(command);
        } catch (Store.Unreachable error) {
            throw new Failure(false, "unreachable", error.getMessage());
        } catch (Store.Refused error) {
            throw new Failure(false, "refused", error.getMessage());
        } catch (IOException error) {
            throw new Failure(true, "timeout", error.toString());
        }
    }

    /** Every hold is to be taken for lost, says Curator in a thread of its own. */
    private void lose(long mine, String why) {
        synchronized (this) {
            if (mine != process) {
                return;
            }
            notices++;
            for (Map.Entry<String, Hold> entry : holds.entrySet()) {
                if (!entry.getValue().lost) {
                    entry.getValue().lost = true;
                    ObjectNode value = JSON.createObjectNode().put("lock", entry.getValue().lock);
                    value.put("hold", entry.getKey());
                    event("info", "lost", value, new Failure(true, "lost", why));
                }
            }
        }
    }

    /** Stop here, if a test has said so: not a step further until it says so. */
    private void reach(String point) {
        if (!armed.remove(point)) {
            return;
        }
        say(JSON.createObjectNode().put("control", "point").put("point", point));
        try {
            String pid = Long.toString(ProcessHandle.current().pid());
            new ProcessBuilder("kill", "-STOP", pid).start().waitFor();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private void event(String type, String f, ObjectNode value, Failure error) {
        synchronized (this) {
            ObjectNode event = JSON.createObjectNode();
            // System.nanoTime is CLOCK_MONOTONIC on Linux.
            event.put("time", System.nanoTime() - setup.get("origin_ns").asLong());
            event.put("process", process).put("type", type).put("f", f).set("value", value);
            event.put("node", setup.get("node").asText());
            if (error != null) {
                ArrayNode why = event.putArray("error");
                why.add(error.kind).add(String.valueOf(error.getMessage()));
            }
            say(event);
        }
    }

    private void say(ObjectNode message) {
        synchronized (this) {
            try {
                out.write((JSON.writeValueAsString(message) + "\n").getBytes(StandardCharsets.UTF_8));
            } catch (IOException error) {
                System.exit(1);
            }
        }
    }
}
