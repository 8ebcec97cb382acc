"""Do we find what was printed? Published tables of routers beside our runs, each row with a verdict and a reason."""

from lbopt.studies.reproduction.config import ITEMS, ReproductionConfig
from lbopt.studies.reproduction.question import Question, Row
from lbopt.studies.reproduction.study import ReproductionOutcome, run_reproduction

__all__ = ["ITEMS", "Question", "ReproductionConfig", "ReproductionOutcome", "Row", "run_reproduction"]
