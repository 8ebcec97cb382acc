"""The optimum of a replete pool, and the chain under it, against enumeration and loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import theory_lemmas as naive

from lbopt.exceptions import InputError
from lbopt.model import StepProblem
from lbopt.solvers import solve
from lbopt.theory.chains.batch_means import slot_streams
from lbopt.theory.chains.replete import COMPOSITIONS, PEAKS, Replete, level
from lbopt.theory.laws.slot_law import PromptLaw

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

LAWS = (
    PromptLaw.uniform(2),
    PromptLaw.uniform(4),
    PromptLaw.two_sizes(5),
    PromptLaw((3, 7), (1, 2)),
    PromptLaw((2, 5, 8), (1, 1, 1)),
    PromptLaw((4,), (1,)),
)


@pytest.mark.jit
@given(
    workers=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 20)), min_size=2, max_size=12),
    law=st.sampled_from(LAWS),
)
@settings(max_examples=60)
def test_the_optimum_is_the_one_of_the_search(workers, law):
    """The exact search knows nothing of floors and rungs: it is given the pool, request by request."""
    before, free = [load for load, _ in workers], [slots for _, slots in workers]
    problem = StepProblem.now(before, free, np.repeat(law.lengths, sum(free)))
    answer = solve(problem)
    assert answer.status == "optimal"
    assert answer.objective == level(before, free, law)[0]


@given(
    workers=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=2, max_size=4),
    law=st.sampled_from(LAWS),
    peak=st.sampled_from(PEAKS),
)
@settings(max_examples=150)
def test_the_optimum_is_the_one_of_enumeration(workers, law, peak):
    before, free = [load for load, _ in workers], [slots for _, slots in workers]
    plenty = [max(1, sum(free))] * len(law.lengths)
    best, optima = naive.all_optima(before, free, law.lengths, plenty)
    cost, loads = level(before, free, law, peak=peak)
    optimal = {tuple(naive.loads_of(before, chosen)) for chosen in optima}
    assert cost == best
    assert tuple(loads) in optimal
    if peak == "lowest":
        assert loads.max() == min(max(one) for one in optimal)


def test_raised_is_as_high_as_an_optimum_of_equal_loads_can_be():
    _, loads = level([5, 3], [2, 3], PromptLaw.uniform(4), peak="raised")
    assert loads.tolist() == [13, 13]


@pytest.mark.parametrize("law", LAWS[1:5], ids=str)
@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("growth", [(1,), (0, 2, 1)], ids=str)
def test_the_chain_is_the_one_of_loops(law, composition, growth):
    G, B, p, steps, burn_in = 3, 5, 0.4, 25, 4
    run = Replete(G, B, p, law, growth, composition).run(steps, 11, burn_in)
    streams = [[int(start) for start in worker] for worker in slot_streams(11, G, B)]
    rows = naive.replete_chain(streams, math.log1p(-p), growth, law.lengths, composition == "extreme", steps + burn_in)[
        burn_in:
    ]
    for name in run.steps.dtype.names:
        expected = [row[{"envelope": "largest"}.get(name, name)] for row in rows]
        assert run.steps[name].tolist() == expected, name
    np.testing.assert_allclose(run.mean_square, [row["square"] for row in rows])


def test_ends_do_not_depend_on_the_choice_of_sizes():
    runs = [Replete(3, 8, 0.3, PromptLaw.uniform(4), peak=peak).run(30, 2, 5) for peak in PEAKS]
    assert len({tuple(run.steps.admitted) for run in runs}) == 1
    assert runs[0].mean_admitted < runs[2].mean_admitted < runs[1].mean_admitted


@pytest.mark.parametrize(
    "law", [PromptLaw.two_sizes(4), PromptLaw.uniform(8), PromptLaw((2, 5, 8), (1, 1, 1))], ids=str
)
def test_the_mean_level_admits_what_a_rule_without_selection_admits(law):
    """Far above the onset no step lacks room; what is left does not depend on the level."""
    runs = {peak: Replete(4, 256, 0.5, law, peak=peak).run(400, 3, 40) for peak in ("lowest", "mean")}
    assert runs["mean"].mean_admitted == pytest.approx(float(law.mean), rel=1e-3)
    assert runs["lowest"].mean_admitted < 0.8 * float(law.mean)
    assert runs["mean"].steps.imbalance.tolist() == runs["lowest"].steps.imbalance.tolist()


@given(
    workers=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), min_size=2, max_size=4),
    law=st.sampled_from(LAWS),
)
@settings(max_examples=150)
def test_the_mean_level_is_the_nearest_of_the_free_ones(workers, law):
    """All levels of the same cost from the lowest on, tried: none admits a mean nearer to that of the classes."""
    before, free = [load for load, _ in workers], [slots for _, slots in workers]
    cost, lowest = level(before, free, law)
    again, chosen = level(before, free, law, peak="mean")
    assert again == cost
    v, rung = law.lengths[0], (law.lengths[1] - law.lengths[0] if len(law.lengths) > 1 else 1)
    target = sum(free) * (v + law.lengths[-1]) / 2
    reach = [law.lengths[-1] * slots + load for load, slots in zip(before, free, strict=True)]
    best, loads = abs(lowest.sum() - sum(before) - target), lowest.copy()
    while all(load + rung <= most for load, most in zip(loads, reach, strict=True)):
        loads = loads + rung
        best = min(best, abs(loads.sum() - sum(before) - target))
    assert abs(chosen.sum() - sum(before) - target) == best


def test_the_event_e_k_counts_every_worker():
    run = Replete(3, 8, 0.3, PromptLaw.uniform(4)).run(30, 2, 5)
    counts = zip(run.steps.fewest, run.steps.most, strict=True)
    assert run.regular(0.5).tolist() == [a >= 1.2 and b <= 3.6 for a, b in counts]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"law": PromptLaw((1, 2, 4), (1, 1, 1))}, "equal steps"),
        ({"p": 1.0}, "0 < p < 1"),
        ({"p": 0.0}, "0 < p < 1"),
        ({"steps": 0}, "steps = 0"),
        ({"growth": (-1,)}, "growth is"),
        ({"composition": "odd"}, "composition is 'odd'"),
        ({"peak": "top"}, "peak is 'top'"),
    ],
)
def test_what_it_refuses(wrong, says):
    usual = {"G": 2, "B": 2, "p": 0.5, "law": PromptLaw.uniform(3)}
    steps = wrong.get("steps", 3)
    with pytest.raises(InputError, match=says):
        Replete(**(usual | {name: value for name, value in wrong.items() if name != "steps"})).run(steps, 0, 1)
