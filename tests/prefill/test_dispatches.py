"""What the scheduler had before it at each dispatch: the rule asked again gives the units of the run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.rules import many

from lbopt.exceptions import InputError
from lbopt.prefill import ALLOCATIONS, PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.exact import dispatches, sent_by

RULES = (
    *("round-robin", "least-loaded", "longest-first", "pbaa", "pbaa:whole=yes", "pbaa:n_limit=1", "pbaa:cache=yes"),
    "backfill",
    *("pbaa:printed=yes,cache=yes", "pbaa:cache=yes,whole=yes", "pbaa:cache=yes,n_limit=0"),
)
POLICIES = (
    *("staggered", "staggered:idle_bypass=yes", "staggered:window=3", "staggered:timer=tick,interval=0.5"),
    "staggered:interval=0.125",
)


@st.composite
def runs(draw, rules=RULES):
    """Fleets of up to three instances; times are short binary fractions, so that ties abound."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, N, D = draw(st.integers(1, 40)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    length = rng.integers(1, 13, n)
    hits = rng.integers(0, length[:, None, None] + 1, (n, N, D)) if draw(st.booleans()) else None
    arrival = np.sort(rng.integers(0, draw(st.sampled_from([8, 60])), n)) / 8
    setting = PrefillSetting(
        N, D, draw(st.sampled_from(POLICIES)), draw(st.sampled_from(rules)), PassTime(0.5, 1 / 16),
        draw(st.sampled_from([None, 3, 8, 20])), phases=tuple(np.sort(rng.integers(0, 8, N) / 8).tolist()),
    )  # fmt: skip
    return PrefillRequests(arrival, length, hits), setting


def test_every_rule_is_here():
    assert {rule.partition(":")[0] for rule in RULES} == set(ALLOCATIONS)


@pytest.mark.more
@given(runs())
@settings(max_examples=many(400, 100), deadline=None)
def test_the_rule_asked_again_gives_the_units_of_the_run(case):
    requests, setting = case
    run = simulate_prefill(requests, setting, seed=1)
    unit, instance = np.full((2, len(requests)), -1)
    for one in dispatches(requests, setting, seed=1):
        again = sent_by(one.batch, setting.rule.name, one.turn)
        assert again.tolist() == one.unit.tolist()
        sent = one.requests[one.unit >= 0]
        assert (run.requests["dispatched"][sent] == one.time).all()
        unit[sent], instance[sent] = one.unit[one.unit >= 0], one.instance
    assert unit.tolist() == run.requests["unit"].tolist()
    assert instance.tolist() == run.requests["instance"].tolist()


@given(runs([rule for rule in RULES if "n_limit" not in rule]))
@settings(max_examples=many(150, 40), deadline=None)
def test_loads_queue_and_turn_from_the_finished_run(case):
    """Counted anew: what was sent before less what ended passes computed, and who had come and was not sent."""
    requests, setting = case
    run = simulate_prefill(requests, setting, seed=1, keep_units=True)
    table, passes = run.requests, run.passes
    seen = list(dispatches(requests, setting, seed=1))
    assert {one.time for one in seen} >= set(table["dispatched"].tolist())
    for one in seen:
        g, now = one.instance, one.time
        load = [0] * setting.units_per_instance
        for i in np.flatnonzero((table["instance"] == g) & (table["dispatched"] < now)):
            d = table["unit"][i]
            load[d] += int(requests.length[i]) - (0 if requests.hits is None else int(requests.hits[i, g, d]))
        for k in np.flatnonzero((passes["instance"] == g) & (passes["end"] <= now)):
            load = [tokens - int(done) for tokens, done in zip(load, passes["of_unit"][k], strict=True)]
        assert one.batch.load.tolist() == load
        queue = np.flatnonzero((requests.arrival <= now) & (table["dispatched"] >= now))
        assert one.requests.tolist() == queue.tolist()
        assert one.batch.length.tolist() == requests.length[queue].tolist()
        assert one.turn == int(((table["instance"] == g) & (table["dispatched"] < now)).sum())
        before = [other.time for other in seen if other.time < now] if setting.rule.chooses else []
        shown = [any(requests.arrival[i] <= time for time in before) for i in queue]
        assert one.batch.pending.tolist() == shown, "who was shown before and is here was kept"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"policy": "pooled"}, "dispatches are known one by one under a staggered policy, not under 'pooled'"),
        ({"latency": 0.5}, "latency is 0.5; dispatches can be undone only with 0.0"),
        ({"requests_per_pass": 2}, "requests_per_pass is 2; dispatches can be undone only with None"),
        ({"queue_limit": 9}, "queue_limit is 9"),
    ],
)
def test_what_cannot_be_undone(changes, says):
    setting = PrefillSetting(**{"num_instances": 2, "policy": "staggered"} | changes)
    with pytest.raises(InputError, match=says):
        next(dispatches(PrefillRequests(np.zeros(1), np.ones(1, dtype=int)), setting, seed=0))
