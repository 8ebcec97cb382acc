"""Lemma 3: the tail holds with room, the size of the noise is that of normals, and wrong ones are caught."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.theory.chains.batch_means import batch_steps
from lbopt.theory.chains.replete import Replete
from lbopt.theory.claims import lemma_3
from lbopt.theory.claims.lemma_3 import measure_size, measure_tail, size_rows, tail_rows
from lbopt.theory.finding import Verdict, gravest
from lbopt.theory.laws.normal_maximum import range_deviation
from lbopt.theory.laws.slot_law import PromptLaw

jit = pytest.mark.jit


@jit
@pytest.mark.parametrize("claim", lemma_3.CLAIMS, ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    share = sum(finding.is_sampled for finding in findings)
    assert gravest(finding.verdict(share) for finding in findings) == claim.expected


@jit
def test_the_looseness_that_a_note_states_is_where_the_verdict_turns():
    """As printed the threshold is some ten times too generous; by pairs it is less than twice too generous."""
    run = Replete(8, 512, 0.3, PromptLaw.two_sizes(8)).run(1_000, 0)
    rows = tail_rows("", run)
    assert {row.verdict(12) for row in rows} == {Verdict.HOLDS}
    for i, row in enumerate(rows):
        least = float(re.search(r"[tu] times ([0-9.]+) is refuted", row.note).group(1))
        assert 1 / float(re.search(r"loose by a factor of ([0-9.]+)", row.note).group(1)) == pytest.approx(
            least, rel=0.01
        )
        assert (0.05 if i % 2 == 0 else 0.5) < least < (0.1 if i % 2 == 0 else 1)
        assert tail_rows("", run, scale=0.98 * least)[i].verdict(12) is Verdict.REFUTED
        assert tail_rows("", run, scale=1.02 * least)[i].verdict(12) is not Verdict.REFUTED


@pytest.fixture(scope="module")
def fleets():
    p, law = 0.5, PromptLaw.uniform(4)
    return [Replete(8, 512 * 2**i, p, law).run(100 * batch_steps(p), 10 + i) for i in range(4)]


@pytest.mark.some(1)
@jit
@pytest.mark.parametrize("wrong", ["nothing", "constant", "exponent"])
def test_a_constant_or_an_exponent_off_by_a_tenth_is_caught(fleets, wrong):
    if wrong == "constant":
        fleets = [replace(run, mean_square=run.mean_square * 1.1**2) for run in fleets]
    if wrong == "exponent":
        sizes = [round((512 * 2 ** (i // 2 * 2)) ** 1.25) for i in range(4)]
        fleets = [replace(run, of=replace(run.of, B=B)) for run, B in zip(fleets, sizes, strict=True)]
    rows = size_rows("", fleets, batch_steps(0.5), [""] * 4)
    verdicts = [row.verdict(len(rows)) for row in rows]
    if wrong == "nothing":
        assert gravest(verdicts) == Verdict.HOLDS
    elif wrong == "constant":
        assert verdicts[:-1:4] == [Verdict.REFUTED] * 4
        assert verdicts[-1] == Verdict.HOLDS
    else:
        assert verdicts[-1] == Verdict.REFUTED


@pytest.mark.parametrize(("G", "tabled"), [(1, 0.0), (2, 0.8525), (3, 0.8884), (5, 0.8641), (10, 0.7971), (25, 0.7084)])
def test_the_deviation_of_the_range_is_the_tabled_one(G, tabled):
    """d_3 of the tables for control charts (ASTM manual on presentation of data)."""
    assert range_deviation(G) == pytest.approx(tabled, abs=1e-4)


def test_the_deviation_of_the_range_is_that_of_drawn_normals():
    drawn = np.ptp(np.random.default_rng(0).standard_normal((200_000, 8)), axis=1).std()
    assert range_deviation(8) == pytest.approx(drawn, rel=0.01)


@pytest.mark.parametrize(
    ("measure", "wrong", "says"),
    [
        (measure_tail, {"p": 0.0}, "lemma-3 assumes outputs of law Geo"),
        (measure_tail, {"B": 0}, "B is 0"),
        (measure_tail, {"pool": "odd"}, "pool is 'odd'"),
        (measure_tail, {"steps": 0}, "steps is 0"),
        (measure_size, {"doublings": 1}, "doublings is 1"),
        (measure_size, {"batches": 3}, "batches is 3"),
        (measure_size, {"p": 0.001}, "fleets of at most"),
    ],
)
def test_what_it_refuses(measure, wrong, says):
    with pytest.raises(InputError, match=says):
        measure(seed=0, **wrong)
