"""Sent ahead by messages against the compiled policy `anticipating`: the same where ends are heard at once.

The two share the allocation kernels and nothing else.
"""

import numpy as np
import pytest
from prefill.protocol.ahead_runs import compiled, drawn, first_tokens, in_messages


def check(seed):
    case = drawn(seed)
    run, world = compiled(*case), in_messages(*case, moments=True)
    assert np.abs(first_tokens(world) - run.requests["finished"]).max() < 1e-9, case[:5]
    assert (world.log.instance == run.requests["instance"]).all()
    assert (world.log.unit == run.requests["unit"]).all()
    assert np.abs(world.log.dispatched - run.requests["dispatched"]).max() < 1e-8, "a timer takes a nanosecond"


@pytest.mark.some(2)
@pytest.mark.parametrize("part", range(4))
def test_prompt_by_prompt(part):
    for seed in range(4 * part, 4 * (part + 1)):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_200_draws(part):
    for seed in range(1000 + 20 * part, 1000 + 20 * (part + 1)):
        check(seed)


def test_what_the_way_back_costs():
    """Ends that are heard 20 ms later cost a little, and less than the first token waits for that message."""
    instances, units, chunk, law, options, arrival, lengths = drawn(8)
    options = {**options, "latency": 0.02, "margin": 2.0, "spacing": 1.0, "allocation": "backfill"}
    case = instances, units, chunk, law, options, arrival, lengths
    at_once, later = (first_tokens(in_messages(*case, back=back)).mean() - back for back in (0.0, 0.02))
    mean = at_once - arrival.mean()
    assert later - at_once < 0.1 * mean
