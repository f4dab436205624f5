"""lincheck: is a history linearizable? Pure Python, standard library only.

    from fencepost.checker.lincheck import check
    verdict = check(events, "cas-register", init=0)
    verdict.valid        # True, False or "unknown"
    verdict.evidence()   # its proof

`check` takes a complete history; `Online` takes events as they happen. A model is a name (`named`
builds one, `NAMES` lists them) or a custom `Model`. docs/lincheck.md has the rest.
"""

from fencepost.checker.lincheck.evidence import Evidence
from fencepost.checker.lincheck.history import UNKNOWN, BadHistory, Call
from fencepost.checker.lincheck.model import Action, BadValue, Inconsistent, Model
from fencepost.checker.lincheck.models import NAMES, named
from fencepost.checker.lincheck.online import Online
from fencepost.checker.lincheck.verdict import Verdict, check
from fencepost.checker.lincheck.verifier import verify

__all__ = [
    "NAMES",
    "UNKNOWN",
    "Action",
    "BadHistory",
    "BadValue",
    "Call",
    "Evidence",
    "Inconsistent",
    "Model",
    "Online",
    "Verdict",
    "check",
    "named",
    "verify",
]
