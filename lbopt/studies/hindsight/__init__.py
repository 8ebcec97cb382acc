"""The study of hindsight: how far were rules from what was possible with all lengths known?"""

from lbopt.studies.hindsight.study import HindsightConfig, HindsightOutcome, RuleInHindsight, run_hindsight

__all__ = ["HindsightConfig", "HindsightOutcome", "RuleInHindsight", "run_hindsight"]
