"""Waits that an independent simulation printed where no formula is known.

The printed number is one run of so many requests: it has to lie where one more run would, with 99 % confidence, judged
by the spread of runs of the same length here, plus half a unit of its last digit.
"""

import numpy as np
import pytest
from prefill.law_points import PASS
from scipy.special import stdtrit

from lbopt.prefill import PrefillRequests, PrefillSetting, simulate_prefill

pytestmark = [pytest.mark.slow, pytest.mark.jit]
RUNS = 6
FOUR = {"requests_per_pass": 4}
MANY = 1_500_000

#: policy, N, load, requests, part of the run, printed, digits, rules
PRINTED = [
    *[("pooled", 10, load, MANY, "last", wait, 4, {}) for load, wait in zip(
        (0.05, 0.5, 2.0, 4.0, 8.0), (0.0, 0.0023, 0.0568, 0.0556, 0.0515), strict=True)],
    ("pooled", 10, 8.0, 20_000, "all", 0.075, 3, {}),
    ("pooled", 10, 8.0, 200_000, "all", 0.059, 3, {}),
    ("pooled", 3, 2.0, MANY, "last", 0.175, 3, {}),
    ("pooled", 3, 8.0, MANY, "last", 0.171, 3, {}),
    ("pooled", 32, 8.0, MANY, "first", 0.0231, 4, {}),
    ("pooled", 32, 8.0, MANY, "last", 0.0177, 4, {}),
    ("pooled", 32, 8.0, MANY, "last", 0.0160, 4, {"phases": "even"}),
    *[("round-robin", 10, 4 * rho, 2_000_000, "steady", wait, 3, FOUR) for rho, wait in zip(
        (0.5, 0.8, 0.9, 0.95), (0.500, 0.509, 0.557, 0.673), strict=True)],
    *[("pooled", 10, 4 * rho, 2_000_000, "steady", wait, 3, FOUR) for rho, wait in zip(
        (0.5, 0.8, 0.9, 0.95), (0.068, 0.104, 0.166, 0.291), strict=True)],
]  # fmt: skip
PARTS = {"all": (0, 4), "first": (0, 1), "last": (3, 4)}


def one_run(policy, N, load, count, part, rules, seed):
    setting = PrefillSetting(N, policy=policy, pass_time=PASS, **rules)
    wait = simulate_prefill(PrefillRequests.poisson(N * load, 1, seed, count), setting, seed=seed).wait
    begin, end = PARTS.get(part, (0.4, 4))
    return wait[int(begin * count / 4) : end * count // 4].mean()


@pytest.mark.parametrize(("policy", "N", "load", "count", "part", "printed", "digits", "rules"), PRINTED)
def test_printed(policy, N, load, count, part, printed, digits, rules):
    runs = RUNS if count > 200_000 else 5 * RUNS
    means = np.array([one_run(policy, N, load, count, part, rules, seed) for seed in range(runs)])
    spread = stdtrit(runs - 1, 0.995) * means.std(ddof=1) * (1 + 1 / runs) ** 0.5
    print(f"{policy} N={N} load={load:g} {part}: {means.mean():.5f} +- {spread:.5f}, printed {printed}")
    assert abs(means.mean() - printed) <= spread + 0.5 * 10.0**-digits
