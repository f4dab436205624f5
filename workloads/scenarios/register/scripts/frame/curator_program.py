"""A program in Java that uses Curator."""

from frame.java_program import java_command
from frame.zookeeper_server import JARS

NAMES = (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
    "guava", "slf4j-api",
)  # fmt: skip
CLIENTS = """
final class Clients {
    static org.apache.curator.framework.CuratorFramework connect(String port, int sessionMs)
            throws Exception {
        var client = org.apache.curator.framework.CuratorFrameworkFactory.builder()
            .connectString("127.0.0.1:" + port)
            .sessionTimeoutMs(sessionMs)
            .connectionTimeoutMs(5_000)
            .retryPolicy(new org.apache.curator.retry.RetryForever(200))
            .build();
        client.start();
        client.blockUntilConnected();
        return client;
    }
}
"""


def curator_command(folder, program):
    path = ":".join(f"{JARS}/{name}.jar" for name in NAMES)
    return java_command(folder, path, program + CLIENTS)
