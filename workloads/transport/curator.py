"""The commands of the programs on Debian's Curator, which the nodes' image has compiled."""

from __future__ import annotations

_JARS = (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
    "guava", "slf4j-api",
)  # fmt: skip
_CLASSES = ["/opt/fencepost/libraries/curator", *(f"/usr/share/java/{jar}.jar" for jar in _JARS)]


def program(main: str) -> tuple[str, ...]:
    """Return the command that runs a main class of sdk/clients/curator."""
    return (
        "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", ":".join(_CLASSES), main,
    )  # fmt: skip
