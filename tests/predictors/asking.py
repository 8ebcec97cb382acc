"""Short forms for tests: a trace from lists, and a predictor's answer about one age or many."""

import numpy as np

from lbopt.model import Trace


def trace_of(outputs, prompts=None):
    """A trace of these outputs; prompts of 1 where none are given."""
    return Trace(prompt=[1] * len(outputs) if prompts is None else prompts, output=list(outputs), name="given")


def answer(predictor, ages, horizon, prompt=1, requests=None):
    """p and mu at each age, for requests of one prompt length."""
    ages = np.asarray(ages, dtype=np.int64)
    numbers = np.zeros_like(ages) if requests is None else np.asarray(requests, dtype=np.int64)
    return predictor.ends_within(numbers, np.full_like(ages, prompt), ages, horizon)


def expected_within(p, mu, horizon):
    """(1 - p) H + p mu, the mean of min(remaining, H)."""
    return (1 - p) * horizon + p * mu
