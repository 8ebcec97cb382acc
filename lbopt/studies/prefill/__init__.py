"""Dispatch rules beside each other on the prompts of one trace: who waits where, and how full passes are."""

from lbopt.studies.prefill.study import PrefillConfig, PrefillOutcome, Rule, RuleRun, run_prefill

__all__ = ["PrefillConfig", "PrefillOutcome", "Rule", "RuleRun", "run_prefill"]
