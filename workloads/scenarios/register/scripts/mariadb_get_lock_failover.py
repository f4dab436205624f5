"""MariaDB's GET_LOCK with Connector/J: after a failover two clients have the lock.

Run with MariaDB 10.11, Connector/J 2.7.6 (Debian's), Java 17, Python 3.11.
Needs: Debian's mariadb-server and libmariadb-java; java with its compiler.
JAR is the driver, /usr/share/java/mariadb-java-client.jar unless set.
CONTROL=1 does not stop the primary.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.

A primary and its replica; the clients' URL names both. The primary is paused in one part and killed
in the other. The replica is promoted, as a monitor does it, and the second client asks for the lock.
"""

import os
import subprocess
import tempfile

from frame.java_program import java_command
from frame.mariadb_server import mariadb_server

JAR = os.environ.get("JAR", "/usr/share/java/mariadb-java-client.jar")
FAIL = not os.environ.get("CONTROL")
PROGRAM = """
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

public final class Show {
    static Connection connect(String hosts) throws SQLException {
        return DriverManager.getConnection("jdbc:mariadb:sequential://" + hosts
            + "/?user=root&autoReconnect=true&connectTimeout=1000&socketTimeout=2000");
    }

    static String ask(Connection client, String question) throws SQLException {
        try (Statement statement = client.createStatement();
                ResultSet answer = statement.executeQuery("SELECT " + question)) {
            answer.next();
            return answer.getString(1);
        }
    }

    static void tell(Connection client, String... words) throws SQLException {
        try (Statement statement = client.createStatement()) {
            for (String one : words) {
                statement.execute(one);
            }
        }
    }

    static void signal(String what, String pid) throws Exception {
        new ProcessBuilder("kill", "-" + what, pid).start().waitFor();
    }

    /** Ask for the lock until an answer comes: a failover may be reported once. */
    static String acquire(Connection client) throws Exception {
        for (int n = 0; ; n++) {
            try {
                return ask(client, "GET_LOCK('job', 0)");
            } catch (SQLException error) {
                if (n == 20) {
                    throw error;
                }
                Thread.sleep(200);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        String first = "127.0.0.1:" + arguments[0];
        String second = "127.0.0.1:" + arguments[1];
        String pid = arguments[2];
        String how = arguments[3];
        Connection monitor = connect(second);
        tell(monitor, "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=" + arguments[0]
            + ", MASTER_USER='root', MASTER_USE_GTID=slave_pos", "START SLAVE");
        try (Connection admin = connect(first)) {
            tell(admin, "CREATE DATABASE work", "CREATE TABLE work.seen (n INT PRIMARY KEY)");
        }
        String there = "COUNT(*) FROM information_schema.tables WHERE table_name = 'seen'";
        for (int n = 0; ask(monitor, there).equals("0"); n++) {
            if (n == 300) {
                throw new IllegalStateException("the replica does not follow");
            }
            Thread.sleep(100);
        }
        Connection one = connect(first + "," + second);
        Connection two = connect(first + "," + second);
        if (!acquire(one).equals("1") || !acquire(two).equals("0")) {
            throw new IllegalStateException("the lock does not work before the failover");
        }
        if (!how.isEmpty()) {
            signal(how, pid);
            tell(monitor, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0");
        }
        String granted = acquire(two);
        if (how.equals("STOP")) {
            signal("CONT", pid);
        }
        if (granted.equals("1")) {
            String told;
            try {
                told = "its next statement is answered by server " + ask(one, "@@server_id")
                    + " and IS_USED_LOCK is " + (ask(one, "IS_USED_LOCK('job')")
                    .equals(ask(one, "CONNECTION_ID()")) ? "its own session" : "another session");
            } catch (SQLException error) {
                told = "its next statement fails: " + error.getMessage();
            }
            System.out.println("the second client has the lock on server "
                + ask(two, "@@server_id") + "; the first one had it, and " + told);
        }
        System.exit(0);
    }
}
"""


def fail_over(how):
    with (
        mariadb_server("--log-bin", "--server-id=1") as primary,
        mariadb_server("--log-bin", "--server-id=2", "--read-only") as replica,
        tempfile.TemporaryDirectory() as folder,
    ):
        words = [str(primary.port), str(replica.port), str(primary.process.pid), how]
        command = [*java_command(folder, JAR, PROGRAM), *words]
        ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"the program did not end as planned: {ended.stderr}")
    return ended.stdout.strip()


if __name__ == "__main__":
    said = {
        "paused": fail_over("STOP" if FAIL else ""),
        "killed": fail_over("KILL" if FAIL else ""),
    }
    found = [f"primary {what}: {words}" for what, words in said.items() if words]
    assert not found, "\n".join(found)
