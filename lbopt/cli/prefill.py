"""`lbopt prefill`: rules that dispatch prompts to prefill instances, beside each other."""

from __future__ import annotations

from typing import Any

from lbopt.cli.carry_out import carry_out
from lbopt.cli.from_config import first_of, parameters
from lbopt.cli.study_verb import as_verb
from lbopt.studies.configuration import from_words
from lbopt.studies.prefill import PrefillConfig
from lbopt.studies.prefill.config import Instances


def prefill(**given: Any) -> None:
    """Send prompts to prefill instances by several rules, and compare times to first token.

    Policies: random, round-robin, jsq[:by=tokens], pooled, staggered[:window=, interval=, timer=, target=,
    idle_bypass=], anticipating[:margin=, spacing=, error=]. Allocations to units: round-robin, least-loaded,
    longest-first, backfill[:split=], pbaa[:whole=, n_limit=].

    With --out, writes rules.csv, requests.csv, passes.csv and run.json.

    Example: `lbopt prefill azure-like --load 0.8 -p round-robin -p staggered:window=50/pbaa`
    """
    carry_out("prefill", from_words(PrefillConfig, given, setting=from_words(Instances, given).setting), given["out"])


as_verb(
    prefill,
    "prefill",
    prefill.__doc__ or "",
    (parameters(PrefillConfig) | parameters(Instances)).values(),
    first_of(PrefillConfig) | {"instances", "units"},
)
