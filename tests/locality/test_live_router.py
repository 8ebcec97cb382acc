"""The router of a live fleet: every decision of many threads is the naive one on the counts of its version."""

from collections import Counter

import numpy as np
import pytest
from locality import naive_routing as naive
from locality.live_log import NAMES, TAU, replay, run_threads, tables

from lbopt.exceptions import InputError
from lbopt.locality import MoEShape, RoutingTable, draw_workload, fit_routing, task_workload
from lbopt.locality.live_router import LiveRouter


@pytest.mark.jit
def test_decisions_of_eight_threads_are_those_of_one():
    """Workers close and open and tables are exchanged meanwhile; all counts come back to zero."""
    made, counts, near = tables()
    router = LiveRouter(made[0], TAU)
    log = run_threads(router, made, counts, threads=8, decisions=1500)
    wrong, load = replay(log, near, made)
    kinds = Counter(row[1] for row in log)
    assert wrong == 0 and kinds["begin"] == kinds["end"] == 12_000 and kinds["table"] > 3
    assert set(load.values()) == {0} and router.sight().in_flight == (0,) * 8


@pytest.mark.jit
def test_the_replay_can_fail():
    """A decision that is noted for another request, or on counts of another moment, is found."""
    made, counts, near = tables()
    log = sorted(run_threads(LiveRouter(made[0], TAU), made, counts, threads=2, decisions=300, changes=False))
    begins = [i for i, row in enumerate(log) if row[1] == "begin"]
    swapped = list(log)
    for i, j in zip(begins[::2], begins[1::2], strict=False):
        swapped[i], swapped[j] = (log[i][0], *log[j][1:]), (log[j][0], *log[i][1:])
    assert replay(swapped, near, made)[0] > 0


def test_one_after_the_other():
    made, counts, near = tables()
    router = LiveRouter(made[0], TAU)
    load = [0] * 8
    for request in range(60):
        placed = router.begin(counts[request])
        assert placed.place == naive.route(near[0][request], load, TAU)
        assert placed.worker == NAMES[placed.place] and placed.ticket == request + 1
        load[placed.place] += 1
    sight = router.sight()
    assert sight == (60, made[0].table_id, NAMES, tuple(load), (True,) * 8)


def test_an_end_counts_once():
    made, counts, _ = tables()
    router = LiveRouter(made[0], TAU)
    placed = router.begin(counts[0])
    assert router.end(placed.ticket) == 2 and router.end(placed.ticket) == 0 and router.end(77) == 0
    assert sum(router.sight().in_flight) == 0 and router.sight().version == 2


def test_a_refused_request_is_not_counted():
    made, counts, _ = tables()
    router = LiveRouter(made[0], TAU)
    with pytest.raises(InputError, match="a value below 0"):
        router.begin(-counts[0])
    for name in NAMES:
        router.set_open(name, False)
    with pytest.raises(InputError, match="no worker is open; let one join"):
        router.begin(counts[0])
    assert sum(router.sight().in_flight) == 0 and router.sight().version == 8


def test_workers_leave_and_join():
    made, counts, _ = tables()
    router = LiveRouter(made[0], 1.0, absent=["h"])
    assert router.sight().workers[7] == "" and not router.sight().is_open[7]
    tickets = [router.begin(counts[0]).ticket for _ in range(14)]
    assert router.sight().in_flight == (2,) * 7 + (0,)
    router.leave("b")
    router.leave("c", lost=True)
    assert router.sight().workers == ("a", "", "", "d", "e", "f", "g", "")
    router.join("new")  # takes the first centroid that nobody has
    router.join("b")  # finds its own taken, and takes the next with the two requests that it still has
    assert router.sight().workers == ("a", "new", "b", "d", "e", "f", "g", "")
    assert router.sight().in_flight == (2, 0, 2, 2, 2, 2, 2, 0)
    router.join("h")
    with pytest.raises(InputError, match="worker 'z' has no centroid: the table has 8 and all have workers"):
        router.join("z")
    ended = [ticket for ticket in tickets if router.end(ticket)]
    assert len(ended) == 12  # two were lost with c
    assert sum(router.sight().in_flight) == 0
    router.set_open("d", False)
    assert router.sight().is_open[3] is False
    router.join("d")
    assert router.sight().is_open[3] is True
    for act in (router.leave, router.set_open):
        with pytest.raises(InputError, match="worker 'c' has no centroid; those that have are a, new, b, d"):
            act("c", *([True] if act == router.set_open else []))


def test_requests_of_a_worker_that_has_left_end_there():
    """Its centroid is another's by then, whose count stays."""
    made, counts, _ = tables()
    router = LiveRouter(made[0], 1.0)
    tickets = {placed.worker: placed.ticket for placed in (router.begin(counts[0]) for _ in range(8))}
    router.leave("a")
    router.join("x")
    router.end(tickets["a"])
    assert router.sight().in_flight == (0, 1, 1, 1, 1, 1, 1, 1)


def test_a_table_is_exchanged_with_counts_and_masks():
    made, counts, _ = tables()
    router = LiveRouter(made[0], 1.0, absent=["h"])
    tickets = [router.begin(counts[0]).ticket for _ in range(7)]
    router.begin(counts[1])
    router.set_open("b", False)
    before = dict(zip(router.sight().workers, router.sight().in_flight, strict=True))
    router.reload(made[1])
    sight = router.sight()
    assert sight.table_id == made[1].table_id == router.table.table_id and sight.workers == ("", *NAMES[6::-1])
    assert all(before[name] == n for name, n in zip(sight.workers[1:], sight.in_flight[1:], strict=True))
    assert sight.is_open == (False, True, True, True, True, True, False, True)
    fewer = RoutingTable(
        "", made[0].shape, "count", None, np.arange(2), made[0].centroids[:3], workers=("a", "h", "new")
    )
    router.reload(fewer)
    assert router.sight().workers == ("a", "", "new") and router.sight().in_flight[0] == before["a"]
    for ticket in tickets:
        assert router.end(ticket)
    router.reload(made[0])  # they come back with what they still have
    assert router.sight().workers == (*NAMES[:7], "") and sum(router.sight().in_flight) == 1


def test_tables_that_do_not_fit_are_refused_and_the_old_one_goes_on():
    made, counts, _ = tables()
    router = LiveRouter(made[0], TAU)
    other = RoutingTable("", MoEShape(1, 16, 1), "count", None, np.array([0]), np.eye(16)[:8])
    with pytest.raises(InputError, match="requests of one model can be routed by tables of that model alone"):
        router.reload(other)
    assert router.table is made[0] and router.begin(counts[0]).worker in NAMES
    with pytest.raises(InputError, match="worker 'q' is absent, and the table has no such worker"):
        LiveRouter(made[0], TAU, absent=["q"])


def test_decisions_are_watched_for_drift():
    activity = draw_workload(task_workload(shape=MoEShape(2, 32, 4), requests=200), seed=1)[1]
    table = fit_routing(activity, 4, starts=1).table
    router = LiveRouter(table)
    assert LiveRouter(table, watch=False).drift is None
    for counts in activity.counts[:30]:
        router.begin(counts)
    reading = router.drift.reading()
    assert reading.requests == 30 and reading.alarm is None
    near = table.similarities(activity.counts[:25])
    assert reading.similarity == pytest.approx(0.9 * reading.expected[0] + 0.1 * near.max(axis=1).mean(), abs=0.002)
    router.reload(table)
    assert router.drift.reading().requests == 0
