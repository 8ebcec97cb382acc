"""The gap study: how far is each rule from the best placement possible, step by step and in the long run?

`run_gap` goes through stages that can each be read alone: `decisions` (where do the step problems come from, what is
the best placement of each, and what do the policies make of it) and `outcome` (their long runs, and what was found).
"""

from lbopt.studies.gap.config import GapConfig
from lbopt.studies.gap.outcome import GapOutcome, LongRun, PolicyGap, SolvedState
from lbopt.studies.gap.study import run_gap

__all__ = ["GapConfig", "GapOutcome", "LongRun", "PolicyGap", "SolvedState", "run_gap"]
