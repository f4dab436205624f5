"""The nodes' Dockerfile: the parts that are built before the libraries under test are fetched."""

from __future__ import annotations

from fencepost.harness.cluster import image

_DOCKERFILE = """\
# An image.
FROM base AS tools
RUN make tools

FROM base

RUN install \\
      packages
COPY --from=tools /tools /tools
RUN use-tools
COPY wheels /wheels
"""


def test_the_beginning_of_a_stage_ends_where_it_copies_files():
    assert image.beginnings(_DOCKERFILE) == [
        "FROM base AS tools\nRUN make tools\n\n",
        "FROM base\n\nRUN install \\\n      packages\n",
    ]


def test_the_packages_of_the_nodes_are_installed_at_the_beginning():
    *stages, nodes = image.beginnings(image.dockerfile())
    assert len(stages) >= 4
    assert "redis-server" in nodes
    assert not any("COPY" in text for text in (*stages, nodes))
