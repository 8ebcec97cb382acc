"""The staggering study: what it is worth to hold prompts back, against which baseline, and which statements hold.

`study` lists the items, `items` compute a part of one for one seed, `questions` are the published figures beside them.
"""

from lbopt.studies.printed import Judged, Question
from lbopt.studies.staggered.places import CONTENDERS, IMMEDIATE, LATE, PLACES, STAGGERED, Place
from lbopt.studies.staggered.questions import questions
from lbopt.studies.staggered.rows import Averaged, Rows
from lbopt.studies.staggered.study import ITEMS, StaggeredConfig, StaggeredOutcome, run_staggered

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
