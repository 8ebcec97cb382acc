"""The compiled prefill simulation against objects and lists that share no code with it, and its books in between."""

import numpy as np
from hypothesis import given, settings
from kernels.rules import many
from prefill.cases import prefill_cases

from lbopt.prefill import Simulation, simulate_prefill


@given(prefill_cases())
@settings(max_examples=many(400, 100))
def test_every_request_and_every_pass(case):
    run = simulate_prefill(case.requests, case.setting, seed=case.seed, keep_units=True)
    twin = case.twin.run()
    for column in ("instance", "unit", "passes"):
        assert run.requests[column].tolist() == [getattr(r, column) for r in twin.requests], column
    for column in ("dispatched", "began", "finished"):
        np.testing.assert_array_equal(run.requests[column], [getattr(r, column) for r in twin.requests], column)
    p = run.passes
    rows = zip(
        p["start"], p["instance"], p["end"], map(tuple, p["of_unit"].tolist()), p["longest"], p["requests"], strict=True
    )
    assert sorted(rows) == sorted(twin.passes)
    assert p["tokens"].tolist() == p["of_unit"].sum(axis=1).tolist()
    assert p["fullest"].tolist() == p["of_unit"].max(axis=1).tolist()


@given(prefill_cases())
@settings(max_examples=many(60, 20))
def test_tokens_and_requests_are_conserved_at_every_moment(case):
    simulation = Simulation(case.requests, case.setting, case.seed)
    state, n = simulation.state, len(case.requests)
    hits, length = case.requests.hits, case.requests.length
    computed = np.zeros(case.setting.num_instances, dtype=np.int64)
    ended = False
    while not ended:
        before = state.instances.copy()
        ended = simulation.run(1)
        over = (before.running >= 0) & (before.running != state.instances.running)
        computed += np.where(over, before.computes, 0)
        record = state.status
        sent = np.flatnonzero(record.instance >= 0)
        g, d = record.instance[sent], record.unit[sent]
        cost = length[sent] - (0 if hits is None else hits[sent, g, d])
        for instance in range(case.setting.num_instances):
            bound = cost[g == instance].sum()
            assert bound == computed[instance] + state.instances.tokens[instance], "sent = computed + backlog"
        assert (state.backlog.sum(axis=1) == state.instances.tokens).all()
        waiting = state.waiting[state.progress.queue_head : state.progress.queue_tail]
        on_the_way = state.progress.way_tail - state.progress.way_head
        running = state.instances.running >= 0
        in_last_pass = state.instances.completes[running].sum()
        queued = state.instances.on_device.sum()
        unfinished = state.progress.unfinished - (n - state.progress.coming)
        assert unfinished == waiting.size + on_the_way + queued + in_last_pass
        assert not np.isin(waiting, sent).any() and np.unique(waiting).size == waiting.size
    served = record.instance >= 0
    assert (record.left[served] == 0).all() and (record.last_pass[served] >= 0).all()
    assert served.sum() + state.progress.refused == n
