"""Speed of the hot paths, for `make bench`; ratios between them matter more than seconds."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.measure import table_1_requests

from lbopt.model import Fleet, StepProblem
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.simulator import SimulationSetting, simulate

pytestmark = [pytest.mark.jit, pytest.mark.slow]


@pytest.mark.parametrize("policy", ["fcfs", "jsq-load", "max-min", "br-0", "jsq", "random"])
def test_simulation(benchmark, policy):
    """20,000 of the Table 1 requests on 16 workers of 72 slots."""
    chosen, setting = make_policy(policy), SimulationSetting(Fleet(16, 72))
    requests = table_1_requests(20_000)
    simulate(requests, chosen, setting)
    benchmark(lambda: simulate(requests, chosen, setting))


@pytest.mark.parametrize("policy", ["fcfs", "jsq-load", "max-min", "br-0"])
@pytest.mark.parametrize("num_workers", [16, 64, 256])
def test_decision(benchmark, policy, num_workers):
    """One decision of a saturated fleet: a free slot or two a worker, a pool of 4 G."""
    rng = np.random.default_rng(3)
    problem = StepProblem.now(
        rng.integers(60_000, 90_000, num_workers),
        rng.integers(0, 3, num_workers),
        rng.integers(9, 2000, 4 * num_workers),
    )
    chosen, observation = make_policy(policy), Observation.of_problem(problem)
    decide(chosen, observation)
    benchmark(lambda: decide(chosen, observation))
