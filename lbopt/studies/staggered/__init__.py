"""The staggering study: what it is worth to hold prompts back, against which baseline, and which printed claims hold.

`plan` lists the questions, `items` answer a part of one for one seed, `claims` are what is printed beside them.
"""

from lbopt.studies.staggered.claim import Claim
from lbopt.studies.staggered.claims import claims
from lbopt.studies.staggered.config import StaggeredConfig
from lbopt.studies.staggered.contenders import CONTENDERS, IMMEDIATE, LATE, STAGGERED
from lbopt.studies.staggered.outcome import StaggeredOutcome
from lbopt.studies.staggered.places import PLACES, Place
from lbopt.studies.staggered.plan import ITEMS
from lbopt.studies.staggered.rows import Averaged, Rows
from lbopt.studies.staggered.study import run_staggered
from lbopt.studies.verdict import Judged

__all__ = [
    "CONTENDERS",
    "IMMEDIATE",
    "ITEMS",
    "LATE",
    "PLACES",
    "STAGGERED",
    "Averaged",
    "Claim",
    "Judged",
    "Place",
    "Rows",
    "StaggeredConfig",
    "StaggeredOutcome",
    "claims",
    "run_staggered",
]
