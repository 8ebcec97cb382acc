"""The staggering study: what it is worth to hold prompts back, against which baseline, and which statements hold.

`plan` lists the items, `items` compute a part of one for one seed, `questions` are the published figures beside them.
"""

from lbopt.studies.staggered.config import StaggeredConfig
from lbopt.studies.staggered.contenders import CONTENDERS, IMMEDIATE, LATE, STAGGERED
from lbopt.studies.staggered.outcome import StaggeredOutcome
from lbopt.studies.staggered.places import PLACES, Place
from lbopt.studies.staggered.plan import ITEMS
from lbopt.studies.staggered.question import Question
from lbopt.studies.staggered.questions import questions
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
    "Judged",
    "Place",
    "Question",
    "Rows",
    "StaggeredConfig",
    "StaggeredOutcome",
    "questions",
    "run_staggered",
]
