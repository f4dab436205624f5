"""Signs of a violation that one quick pass over a run's ops sees, without judging it.

A hunt simulates thousands of runs a second, and a checker takes longer than a run. So the hunt
looks for signs (hunt/search/prefilter.py) and asks a checker only about the runs that it suspects.
A sound run may show a sign. A run that shows none of a checker's signs must be one that the checker
does not call false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

GRANTED_EARLY: Final = "granted-early"
"""A grant, a loss, or an extension of doubtful outcome while another lease or its own still ran."""
GRANTED_BESIDE: Final = "granted-beside"
"""A grant before an earlier holder had given its hold up."""
GRANTED_LATE: Final = "granted-late"
"""A grant or an extension whose lease had expired when the client learned of it."""
REFUSED_HOLDER: Final = "refused-holder"
"""A holder's op failed because its hold had ended while its lease ran."""
WAITED: Final = "waited"
"""Clients that waited longer than the bound, a grant out of order, or a refusal of a lock that no
client held."""
TOKEN_FELL: Final = "token-fell"
"""A grant whose token is not above every earlier one."""
WROTE_LATE: Final = "wrote-late"
"""An accepted write of an earlier hold, or with a lower token, after one of a later hold."""
VERSION_JUMPED: Final = "version-jumped"
"""A read or a write whose version does not follow the last write that the store acknowledged."""

Signs = Collection[str]
"""The signs that a run shows."""


def always(signs: Signs) -> bool:
    """Suspect every run."""
    return True


def any_of(*wanted: str) -> Callable[[Signs], bool]:
    """Suspect the runs that show one of these signs."""
    disjoint = frozenset(wanted).isdisjoint
    return lambda signs: not disjoint(signs)
