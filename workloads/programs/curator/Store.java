import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The resource: a register in Redis, by the little of its protocol (RESP2) that this takes. */
final class Store implements AutoCloseable {
    private static final int CONNECT_MS = 5_000;
    // A write held back in the network must be able to arrive late.
    private static final int REPLY_MS = 120_000;

    /** The request certainly did not arrive. */
    static final class Unreachable extends IOException {
        private static final long serialVersionUID = 1;

        Unreachable(IOException cause) {
            super(cause.getMessage(), cause);
        }
    }

    /** The server said no to the request itself. */
    static final class Refused extends IOException {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }

    private final String host;
    private final int port;
    private Socket socket;
    private InputStream in;

    Store(String host, int port) {
        this.host = host;
        this.port = port;
    }

    /** The reply: a String, a Long, a List of these, or null. */
    Object call(Object... command) throws IOException {
        connect();
        try {
            send(command);
            return receive();
        } catch (Refused error) {
            throw error;
        } catch (IOException error) {
            close();
            throw error;
        }
    }

    private void connect() throws Unreachable {
        if (socket != null) {
            return;
        }
        try {
            socket = new Socket();
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(REPLY_MS);
            socket.connect(new InetSocketAddress(host, port), CONNECT_MS);
            in = new BufferedInputStream(socket.getInputStream());
        } catch (IOException error) {
            close();
            throw new Unreachable(error);
        }
    }

    private void send(Object... command) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(("*" + command.length + "\r\n").getBytes(StandardCharsets.UTF_8));
        for (Object part : command) {
            byte[] bytes = part.toString().getBytes(StandardCharsets.UTF_8);
            out.write(("$" + bytes.length + "\r\n").getBytes(StandardCharsets.UTF_8));
            out.write(bytes);
            out.write('\r');
            out.write('\n');
        }
        socket.getOutputStream().write(out.toByteArray());
    }

    private Object receive() throws IOException {
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case '-':
                throw new Refused(rest);
            case ':':
                return Long.valueOf(rest);
            case '$':
                return text(Integer.parseInt(rest));
            case '*':
                List<Object> parts = new ArrayList<>();
                for (int count = Integer.parseInt(rest); count > 0; count--) {
                    parts.add(receive());
                }
                return parts;
            default:
                throw new IOException("not RESP: " + line);
        }
    }

    private String text(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        byte[] bytes = in.readNBytes(length);
        line();
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\r'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("the server closed the connection");
            }
            line.append((char) next);
        }
        in.read();
        return line.toString();
    }

    @Override
    public void close() {
        if (socket != null) {
            try {
                socket.close();
            } catch (IOException ignored) {
                // It is gone either way.
            }
            socket = null;
        }
    }
}
