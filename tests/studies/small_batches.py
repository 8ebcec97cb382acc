"""A gap study of prefill batches of a second, shared by the tests of the study and of its report."""

from functools import cache

from lbopt.studies.batches import BatchesConfig, run_batches
from lbopt.studies.requests import RequestSource

RULES = ("pbaa", "pbaa:whole=yes", "longest-first", "least-loaded", "round-robin")


def config(**changes):
    """Two instances of three units, twelve batches of each of two behaviours."""
    given = {
        "requests": RequestSource(trace="burstgpt-like", count=400),
        "behaviours": ("pbaa", "least-loaded"),
        "rules": RULES,
        **{"states": 6, "instances": 2, "units": 3, "chunk": 1024, "load": 0.6, "seed": 3, "time_limit": 20.0},
    }
    return BatchesConfig(**given | changes)


@cache
def outcome():
    return run_batches(config())
