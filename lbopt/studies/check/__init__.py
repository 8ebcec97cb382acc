"""Check the ledger: every regime of every claim as a task of its own, then a verdict for each claim."""

from lbopt.studies.check.study import CheckConfig, CheckOutcome, Chosen, ClaimOutcome, run_check

__all__ = ["CheckConfig", "CheckOutcome", "Chosen", "ClaimOutcome", "run_check"]
