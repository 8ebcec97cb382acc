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
from lbopt.theory.chains.replete import COMPOSITIONS, PEAKS, level, run_replete
from lbopt.theory.chains.streams import slot_streams
from lbopt.theory.laws.prompt_law import PromptLaw

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
    run = run_replete(G, B, p, law, steps, burn_in, 11, growth, composition=composition)
    streams = [[int(start) for start in worker] for worker in slot_streams(11, G, B)]
    rows = naive.replete_chain(streams, math.log1p(-p), growth, law.lengths, composition == "extreme", steps + burn_in)[
        burn_in:
    ]
    for name, column in (
        ("gap_before", run.gap_before),
        ("gap_pre", run.gap_pre),
        ("gap", run.gap),
        ("fewest", run.fewest),
        ("most", run.most),
        ("imbalance", run.imbalance),
        ("largest", run.envelope),
        ("admitted", run.admitted),
        ("admitted_tokens", run.admitted_tokens),
    ):
        assert column.tolist() == [row[name] for row in rows], name
    np.testing.assert_allclose(run.mean_square, [row["square"] for row in rows])


def test_ends_do_not_depend_on_the_choice_of_sizes():
    runs = [run_replete(3, 8, 0.3, PromptLaw.uniform(4), 30, 5, 2, peak=peak) for peak in PEAKS]
    assert runs[0].admitted.tolist() == runs[1].admitted.tolist()
    assert runs[0].mean_admitted < runs[1].mean_admitted


def test_the_event_e_k_counts_every_worker():
    run = run_replete(3, 8, 0.3, PromptLaw.uniform(4), 30, 5, 2)
    assert run.regular(0.5).tolist() == [a >= 1.2 and b <= 3.6 for a, b in zip(run.fewest, run.most, strict=True)]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"law": PromptLaw((1, 2, 4), (1, 1, 1))}, "equal steps"),
        ({"p": 1.0}, "0 < p < 1"),
        ({"p": 0.0}, "0 < p < 1"),
        ({"steps": 0}, "steps = 0"),
        ({"delta": -1}, "delta is -1"),
        ({"composition": "odd"}, "composition is 'odd'"),
        ({"peak": "top"}, "peak is 'top'"),
    ],
)
def test_what_it_refuses(wrong, says):
    usual = {"G": 2, "B": 2, "p": 0.5, "law": PromptLaw.uniform(3), "steps": 3, "burn_in": 1, "seed": 0}
    with pytest.raises(InputError, match=says):
        run_replete(**(usual | wrong))
