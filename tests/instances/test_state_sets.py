"""The frozen classes of states: drawn as they say, from equal seeds equally, and from lengths that no trace holds."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.model import Trace
from tools.steady import SteadyFleet, read_number_sets, read_state_sets
from tools.steady.lengths import drawn_records

SETS = read_state_sets()
DRAWN = ("heavy", "narrow", "pareto", "huge", "repeated", "brisk", "slow", "uniform", "bimodal")


def test_names_and_seeds_are_each_used_once() -> None:
    every = [*SETS.values(), *read_number_sets().values()]
    assert len({one.name for one in every}) == len({one.seed for one in every}) == len(every)
    assert all(one.count == 1000 for one in SETS.values())
    assert sum(one.count for one in read_number_sets().values()) == 35


@pytest.mark.parametrize("family", DRAWN)
def test_drawn_lengths_have_the_turnover_that_is_said(family: str) -> None:
    chosen = next(one for one in SETS.values() if one.trace == family)
    records = chosen.records(None)
    assert len(records) == 20_000
    assert (records.prompt >= 1).all() and (records.output >= 1).all()
    fleet = SteadyFleet(records, workers=4, slots=72, pool=600, shape="rich", seed=1)
    freed = [int(one.free_slots.sum()) for one in steps(fleet, 400)][100:]
    assert np.mean(freed) / 4 == pytest.approx(72 / np.mean(records.output), rel=0.1)


def steps(fleet: SteadyFleet, count: int) -> Iterator[SteadyFleet]:
    for _ in range(count):
        fleet.advance()
        yield fleet


def test_records_are_drawn_from_equal_tables_equally() -> None:
    heavy = SETS["rich-heavy-g16-r64"].records(None)
    assert heavy.digest == SETS["leftover-heavy-g16-r512"].records(None).digest
    assert heavy.prompt.min() == 12_000
    assert 100_000 < np.median(heavy.prompt) < 120_000  # exp(11.6) = 109,098


def test_where_a_share_waits_all_are_admitted() -> None:
    for share in (20, 90, 100):
        chosen = replace(SETS[f"all-uniform-g16-s{share}"], warm_up=150)
        for problem in chosen.problems(chosen.records(None), 5):
            free = int(problem.slots.sum())
            assert problem.num_requests == problem.num_admitted == max(1, share * free // 100)


def test_a_pool_waits_where_no_share_is_said() -> None:
    chosen = replace(SETS["leftover-heavy-g16-r64"], warm_up=150)
    again = list(chosen.problems(chosen.records(None), 3))
    for problem, other in zip(chosen.problems(chosen.records(None), 3), again, strict=True):
        assert problem.num_requests == 64 and problem.digest == other.digest


def test_numbers_have_just_enough_slots() -> None:
    chosen = read_number_sets()["numbers-1000-on-189"]
    problems = list(chosen.problems())
    assert len(problems) == 5
    for problem in problems:
        assert problem.num_requests == 1000 and problem.slots.tolist() == [6] * 189
        assert problem.work.min() >= 1 and problem.work.max() <= 10_000
    assert len({problem.digest for problem in problems}) == 5


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InputError, match=r"'rich-code-g16' are drawn from a trace; give its folder with --data"):
        SETS["rich-code-g16"].records(None)
    with pytest.raises(InputError, match="no law 'normal' of lengths; there are lognormal"):
        drawn_records("mine", {"prompts": [{"law": "normal", "low": 1, "high": 2}], "output": 3})
    trace = Trace(prompt=np.array([5]), output=np.array([2]))
    with pytest.raises(InputError, match=r"waiting is 1.5; expected a share of the free slots"):
        SteadyFleet(trace, workers=1, slots=1, pool=1, shape="rich", seed=0, waiting=1.5)
