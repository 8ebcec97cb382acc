"""The gap study: how far is each rule from the best placement possible, step by step and in the long run?

`run_gap` goes through three stages that can each be read alone: `states` (where do the step problems come from),
`optima` (what is the best placement of each), `decisions` and `long_runs` (what do the policies make of them).
"""

from lbopt.studies.gap.config import GapConfig
from lbopt.studies.gap.outcome import GapOutcome, LongRun, PolicyGap, SolvedState
from lbopt.studies.gap.study import run_gap

__all__ = ["GapConfig", "GapOutcome", "LongRun", "PolicyGap", "SolvedState", "run_gap"]
