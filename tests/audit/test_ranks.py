"""What loads of ranks say: the wait and its bounds, whether there is a barrier, its cause, and who is stuck."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import lbopt
from lbopt.exceptions import InputError
from lbopt.instances.rank_log import read_rank_log
from lbopt.studies.audit import RanksConfig, run_ranks
from lbopt.studies.audit.rank_loads import Loads, barrier_of, idle_of, own_law, slow_of, stuck_of

STORED = Path(__file__).parents[1] / "stored" / "rank_logs"


def audited(name, **more):
    return run_ranks(RanksConfig(log=str(STORED / name), **more))


def sentence(outcome, kind):
    return next(one.sentence for one in outcome.findings if one.kind == kind)


@pytest.fixture(scope="module")
def sglang():
    return audited("sglang.log", price=2.0, gpus=16)


def test_the_wait_by_tokens_is_the_most_and_a_law_with_a_fixed_part_gives_less(sglang):
    loads = sglang.loads.loads
    assert sglang.idle.share == pytest.approx(np.mean(1 - loads.sum(axis=1) / (4 * loads.max(axis=1))))
    assert 0.45 < sglang.idle.share < 0.46 and sglang.idle.counts == pytest.approx(1 - 35 / 44)
    of_tokens, *of_cards = sglang.shares
    assert of_tokens.high == sglang.idle.share and of_cards
    assert all(0 < one.low <= one.high < 0.2 for one in of_cards)
    assert sglang.money.high == pytest.approx(sglang.idle.share * 16 * 2 * 730)
    assert sglang.money.low == pytest.approx(min(one.low for one in of_cards) * 16 * 2 * 730)


def test_ranks_of_a_barrier_go_at_one_pace_and_others_do_not(sglang):
    assert sglang.barrier.verdict == "yes" and "38.1" in sentence(sglang, "barrier")
    apart = audited("vllm.log")
    assert apart.barrier.verdict == "unknown"  # one moment with both ranks: 22.7 and 26.1 tokens a second a request
    assert "silent" in " ".join([*apart.notes, sentence(apart, "silent ranks")])


def test_the_cause_the_stuck_and_the_bound_are_said(sglang):
    assert "so short does not tell" in sentence(sglang, "cause")  # four moments
    assert "rank 0 is the heaviest in 100 %" in sentence(sglang, "cause")
    assert "a rule that counts tokens has something to win" in sentence(sglang, "lengths")
    assert "21 requests" in sentence(sglang, "stuck") and "ranks 1, 2, 3 had room" in sentence(sglang, "stuck")
    assert "at most 46.0 % of the time of decoding" in sentence(sglang, "bound")
    assert "Not in it: waits while a rank computes a prompt and what requests wait" in sentence(sglang, "bound")
    assert any("--decode-log-interval" in one for one in sglang.to_log)


def test_shares_become_tokens_by_a_size_that_is_said_or_given():
    said = audited("vllm.log")
    assert said.loads.unit == "tokens" and "inferred" in said.loads.how
    assert said.loads.loads[0, 0] == 642_656
    shares = audited("metrics.prom")
    assert shares.loads.unit.startswith("share") and [one.law for one in shares.shares] == [said.shares[0].law]
    given = audited("metrics.prom", kv_capacity=1000)
    assert given.loads.loads.tolist() == [[930, 180, 0, 0]] and given.idle.share == shares.idle.share


def test_one_rank_is_no_imbalance(tmp_path):
    log = tmp_path / "one.log"
    log.write_text("".join(one for one in (STORED / "sglang.log").open() if "DP0" in one))
    outcome = run_ranks(RanksConfig(log=str(log)))
    assert not outcome.shares and outcome.money is None and "one rank" in sentence(outcome, "one rank")


def test_requests_that_hold_nothing_are_counted(tmp_path):
    """SGLang's count of tokens stands at 0 where decoding is faked under load."""
    import re

    log = tmp_path / "stress.log"
    log.write_text(
        re.sub(r"#token: \d+, token usage: [\d.]+", "#token: 0, token usage: 0.00", (STORED / "sglang.log").read_text())
    )
    outcome = run_ranks(RanksConfig(log=str(log)))
    assert outcome.loads.unit == "requests" and outcome.idle.share == pytest.approx(1 - 35 / 44)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_broken_logs_are_answered_or_refused(tmp_path):
    """Lines lost, doubled, shuffled, and bytes changed: an answer, or one sentence."""
    import random

    from lbopt.report.ranks_report import lead, ranks_tables

    rng, files, answered = random.Random(5), sorted(STORED.iterdir()), 0
    for _ in range(30):
        lines = rng.choice(files).read_bytes().split(b"\n")
        for _ in range(3):
            rng.choice(
                (rng.shuffle, lambda of: of and of.pop(rng.randrange(len(of))), lambda of: of and of.insert(0, of[-1]))
            )(lines)
        data = bytearray(b"\n".join(lines))
        for _ in range(rng.randrange(8)):
            at = rng.randrange(len(data) + 1)
            data[at : at + 1] = bytes([rng.choice(b'0123456789.,:-[]{}"\n \xff')])
        (tmp_path / "log").write_bytes(data)
        try:
            outcome = run_ranks(RanksConfig(log=str(tmp_path / "log")))
        except InputError:
            continue
        answered += bool(ranks_tables(outcome) and lead(outcome) and outcome.to_dict() and outcome.moments())
    assert answered > 10


def test_the_table_of_moments_is_read_again_with_the_same_answer(sglang, tmp_path):
    from lbopt.report.folder import write_csv

    write_csv(tmp_path / "series.csv", sglang.moments())
    assert run_ranks(RanksConfig(log=str(tmp_path / "series.csv"))).idle == sglang.idle


def test_a_law_of_the_own_steps_covers_the_wait_and_is_left_out_where_loads_hardly_move():
    """Loads of eight ranks and steps of 10 ms + 0.1 µs a token with 5 % of noise: 40 logs of 200 moments."""
    rng, covered = np.random.default_rng(7), 0
    series = read_rank_log([STORED / "sglang.log"])
    for _ in range(40):
        loads = rng.gamma(30.0, 2000.0, (200, 8)) * rng.uniform(0.6, 1.4, (200, 1))
        heaviest = loads.max(axis=1)
        step = (0.010 + 1e-7 * heaviest) * rng.normal(1.0, 0.05, 200)
        truth = (1e-7 * (heaviest - loads.mean(axis=1))).mean() / (0.010 + 1e-7 * heaviest).mean()
        running = np.full((200, 8), 20.0)
        fleet = _series(series, loads, running, running / step[:, None])
        found = own_law(Loads(loads, "tokens", ""), fleet, barrier_of(fleet))
        covered += found.low <= truth <= found.high
    assert covered >= 34
    still = np.tile(loads[:1], (200, 1))
    fleet = _series(series, still, running, running / 0.02)
    assert own_law(Loads(still, "tokens", ""), fleet, barrier_of(fleet)) is None


def test_a_slow_rank_is_told_from_a_loaded_one_and_lasting_loads_from_chance():
    """Eight ranks that step by themselves in 10 ms + 0.2 µs a token, with 5 % of noise, over 60 moments."""
    rng, like = np.random.default_rng(3), read_rank_log([STORED / "sglang.log"])
    running = np.full((60, 8), 20.0)
    for run in range(12):
        loads = rng.gamma(40.0, 1000.0, (60, 8))
        loads[:, 5] *= 2 if run % 2 else 1
        step = (0.010 + 2e-7 * loads) * rng.normal(1.0, 0.05, loads.shape) * np.where(np.arange(8) == 2, 1.6, 1.0)
        slow = slow_of(_series(like, loads, running, running / step), Loads(loads, "tokens", ""))
        assert slow.rank == 2 and 1.4 < slow.times < 1.7
        step[:, 2] /= 1.6
        fleet = _series(like, loads, running, running / step)
        assert slow_of(fleet, Loads(loads, "tokens", "")) is None
        assert idle_of(loads, fleet).lasting == bool(run % 2)


def test_requests_that_wait_for_a_moment_are_not_stuck():
    like, running = read_rank_log([STORED / "sglang.log"]), np.full((60, 4), 20.0)
    fleet = _series(like, running * 1000, running, running / 0.02)
    share, waiting = np.full((60, 4), 0.5), np.zeros((60, 4))
    waiting[7, 1] = 30
    fleet.values.update(share=share, waiting=waiting)
    assert stuck_of(fleet) is None
    waiting[:30, 2], waiting[:2, 3] = 30, 5
    found = stuck_of(fleet)
    assert found.ranks == (2,) and found.free == (0, 1, 3) and found.moments == 0.5


def test_python_answers_of_such_a_log_too():
    outcome = lbopt.audit(STORED / "metrics.prom", kv_capacity=1000)
    assert outcome.recommendation.verdict == "withheld" and repr(outcome).startswith("<RanksOutcome ")
    assert list(outcome.to_frame()["rank"]) == ["0", "1", "2", "3"] and len(outcome.to_frame("series")) == 4
    assert "<table" in outcome._repr_html_() and outcome.plot(Figure().add_subplot()).get_ylabel() == "load (tokens)"
    with pytest.raises(InputError, match="unknown argument 'slots'"):
        lbopt.audit(STORED / "metrics.prom", slots=8)


def _series(like, tokens, running, made):
    from dataclasses import replace

    T, G = tokens.shape
    return replace(
        like,
        seconds=np.arange(T, dtype=float),
        ranks=tuple(map(str, range(G))),
        group=np.zeros(G, dtype=np.int64),
        values={"tokens": tokens, "running": running, "made": made},
        silent=np.zeros((T, G), dtype=bool),
    )
