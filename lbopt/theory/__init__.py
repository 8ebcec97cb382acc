"""The theory, checked: laws, chains and single steps, claims by their number in the papers, verdicts.

`laws` are closed forms and what is computed without sampling, `chains` are run for a while, `steps` are single small
ones. A claim (`claim`, one statement or family a file in `claims`, all in `ledger`) is measured with them and returns
findings, from which the verdict follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbopt.lazy_names import lazy_names

if TYPE_CHECKING:
    from lbopt.theory.claim import Claim as Claim
    from lbopt.theory.finding import Finding as Finding
    from lbopt.theory.finding import Verdict as Verdict
    from lbopt.theory.ledger import CLAIMS as CLAIMS
    from lbopt.theory.ledger import find_claim as find_claim

_HOME = {
    "CLAIMS": "lbopt.theory.ledger",
    "Claim": "lbopt.theory.claim",
    "Finding": "lbopt.theory.finding",
    "Verdict": "lbopt.theory.finding",
    "find_claim": "lbopt.theory.ledger",
}

__all__ = list(_HOME)

__getattr__, __dir__ = lazy_names(__name__, _HOME)
