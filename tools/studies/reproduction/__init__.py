"""Do we find what was printed? Published tables of routers beside our runs, each row with a verdict and a reason."""

from tools.studies.reproduction.config import ITEMS, ReproductionConfig
from tools.studies.reproduction.question import Question, Row
from tools.studies.reproduction.study import ReproductionOutcome, run_reproduction

__all__ = ["ITEMS", "Question", "ReproductionConfig", "ReproductionOutcome", "Row", "run_reproduction"]
