"""The study of hindsight: how far were rules from what was possible with all lengths known?"""

from lbopt.studies.hindsight.config import HindsightConfig
from lbopt.studies.hindsight.outcome import HindsightOutcome, RuleInHindsight
from lbopt.studies.hindsight.study import run_hindsight

__all__ = ["HindsightConfig", "HindsightOutcome", "RuleInHindsight", "run_hindsight"]
