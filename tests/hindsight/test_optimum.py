"""The clairvoyant optimum against every placement, by exhaustion and by HiGHS and CP-SAT on the integer program."""

from __future__ import annotations

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hindsight import optimum as module
from lbopt.hindsight.chains import chained, events, finer
from lbopt.hindsight.local_search import least_barriers as step_bounds
from lbopt.hindsight.local_search import slot_by_slot
from lbopt.hindsight.optimum import SOLVERS, HindsightResult, optimum, placement_of, program_of, values_of
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.model import Trace
from lbopt.solvers.backend import RawAnswer
from lbopt.solvers.registry import is_available
from tests.hindsight.frozen import lengths_of
from tests.hindsight.small_runs import KINDS, least_barriers, small_run

RUNS = 360  # of the kinds in turn


def four_by_four(seed=3, count=30):
    trace = lengths_of("uniform", count, np.random.default_rng(seed))
    return first_come(Trace(prompt=trace.prompt, output=trace.output % 40 + 1), 4, 3)


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_every_placement_and_with_solvers(kind):
    """Exhaustion = brute force = HiGHS = CP-SAT; a claim beyond a solver's range is not used."""
    rng = np.random.default_rng([5, KINDS.index(kind)])
    improved = 0
    for number in range(RUNS // len(KINDS)):
        timetable = small_run(kind, rng)
        least = least_barriers(timetable)
        assert step_bounds(timetable).sum() <= least
        improved += least > step_bounds(timetable).sum()
        often = ("search", "highs") if kind != "long" else ("search",)  # many steps take HiGHS long
        for solver in ("search", *SOLVERS) if number % 4 == 0 else often:
            if solver == "search" or is_available(solver):
                result = optimum(timetable, 30, known=slot_by_slot(timetable), solver=solver)
                assert result.upper == least == timetable.barriers(result.worker)
                assert result.lower == least or (solver, result.stop) == ("highs", "refused")
                assert result.is_proved == (result.lower == least and not result.proof.startswith("claimed"))
    assert improved > 0 or kind == "zeros"  # the bounds of the steps alone would not do


def test_chains_share_a_worker_and_windows_hold_the_tokens_of_the_run():
    """In every placement; what windows come to is never above the barriers, and meets them where time is cut enough."""
    rng = np.random.default_rng(4)
    tied = 0
    for kind in KINDS * 8:
        timetable = small_run(kind, rng, 14)
        chains, cuts = chained(timetable), events(timetable)
        worker = slot_by_slot(timetable)
        heads = {int(c): int(g) for c, g in zip(chains.of[::-1], worker[::-1], strict=True)}
        assert all(heads[int(c)] == g for c, g in zip(chains.of, worker, strict=True))
        tied += timetable.num_requests - chains.start.size
        for edges in (cuts, finer(timetable, cuts, worker)):
            tokens = chains.tokens(edges)
            assert tokens.sum() == timetable.totals().sum()
            values = values_of(chains, tokens, worker)
            cost = sum(values[-tokens.shape[1] :])
            assert cost <= timetable.barriers(worker)
            same = placement_of(chains, values)  # but for the names of the workers
            assert timetable.barriers(same) == timetable.barriers(worker)
            program = program_of(chains, tokens, np.zeros(tokens.shape[1], dtype=np.int64))
            assert program.tokens(sum(c * v for c, v in zip(program.cost, values, strict=True))) == cost
            for row in program.rows:
                shown = sum(a * values[c] for a, c in zip(row.coefficients, row.columns, strict=True))
                assert (row.lower is None or row.lower <= shown) and (row.upper is None or shown <= row.upper)
        assert cost == timetable.barriers(worker)
    assert tied > 100


def test_a_full_fleet_is_settled_by_the_search():
    timetable = four_by_four()
    result = optimum(timetable, 600)
    assert result.is_proved and (result.proof, result.stop) == ("search", "done")
    assert result.lower > step_bounds(timetable).sum()


@pytest.mark.parametrize("solver", SOLVERS)
def test_false_claims_are_not_used(solver, monkeypatch):
    """A bound above what is reached, a placement without slots, and numbers that the solver is not trusted with."""
    pytest.importorskip({"cp-sat": "ortools", "highs": "highspy"}[solver])
    timetable = four_by_four(4, 12)
    least = optimum(timetable, 600, solver="search").upper

    def asked(**answer) -> HindsightResult:
        class Backend:
            @staticmethod
            def minimise(task):
                values = task.hint if answer.get("values") is None else answer["values"](task)
                return RawAnswer(values=values, bound=answer["bound"], stop="done", native_status="")

        monkeypatch.setattr(module, "load", lambda _: Backend)
        return optimum(timetable, 60, known=slot_by_slot(timetable), solver=solver)

    above = asked(bound=10 * least)
    assert above.lower < least <= above.upper and above.stop == "refused"
    crowded = asked(bound=least, values=lambda task: [1, 0, 0, 0] * 12 + list(task.hint[48:]))
    assert crowded.lower < least and crowded.stop == "failed"


def test_nothing_to_choose():
    """One worker, one request, no request."""
    for timetable in (Timetable(1, 3, [0, 0, 2], [4, 1, 7], [3, 2, 2]), Timetable(3, 1, [2], [5], [4])):
        result = optimum(timetable, 60)
        assert result.is_proved
        assert result.upper == timetable.barriers(result.worker)
    empty = optimum(Timetable(2, 2, [], [], []), 60)
    assert (empty.lower, empty.upper, empty.stop) == (0, 0, "done")


def test_time_is_kept_and_bounds_hold():
    timetable = four_by_four(7, 40)
    best = optimum(timetable, 600).upper
    for limit in (1e-6, 0.01, 0.05):
        result = optimum(timetable, limit)
        assert result.lower <= best <= result.upper
        assert (result.stop == "done") == (result.lower == result.upper)


def test_what_cannot_be_is_refused():
    timetable = four_by_four(7, 14)
    with pytest.raises(InputError, match="time_limit is 0"):
        optimum(timetable, 0)
    with pytest.raises(InputError, match="solver is 'cplex'; expected one of exact, search, cp-sat, highs"):
        optimum(timetable, 1, solver="cplex")
    with pytest.raises(InputError, match="holds more than 3 requests"):
        optimum(timetable, 1.0, known=np.zeros(timetable.num_requests, dtype=np.int64))
