"""Every option of workers in detail, on fleets so small that a pencil gives the same; a step takes a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulator.laws import simulate_checked

from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, RequestPrefixes, Trace
from lbopt.policies import make_policy
from lbopt.simulator import Detail, Run, SimulationSetting, TraceTimes
from lbopt.simulator.recorder import Happened

#: The draws wrap around, of which NumPy warns where they run as plain Python.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def run(
    requests: list[tuple[float, int, int]],
    detail: Detail,
    *,
    workers: int = 1,
    slots: int = 2,
    capacity: int | None = None,
    rule: str = "max-min",
    per_token: float = 0.0,
    blocks: list[list[int]] | None = None,
) -> Run:
    """Simulate requests of (arrival, prompt, output)."""
    arrival, prompt, output = (np.array(column) for column in zip(*requests, strict=True))
    setting = SimulationSetting(
        Fleet(workers, slots, capacity),
        arrivals=TraceTimes(),
        event_order="theory",
        step_time=AffineStepTime(1.0, per_token),
        detail=detail,
    )
    prefixes = None
    if blocks is not None:
        first = np.cumsum([0, *map(len, blocks)])
        prefixes = RequestPrefixes(block_tokens=4, first=first, blocks=np.array([b for one in blocks for b in one]))
    trace = Trace(prompt=prompt, output=output, arrival=arrival.astype(float), prefixes=prefixes)
    return simulate_checked(trace, make_policy(rule), setting, keep_loads=True)


def requests_of(run: Run, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(run.requests[name].tolist() for name in names), strict=True))


# Two requests of prompt 3 and output 4 beside each other in 8 tokens. After step 1 they are 4 + 4, after step 2 5 + 5:
# the second is pre-empted with 2 tokens made. The first ends with step 4. The second starts anew at decision 4, makes
# tokens 3 and 4 in steps 5 and 6.
TWO = [(0, 3, 4), (0, 3, 4)]


def test_recomputation() -> None:
    detail = Detail(preempt="recompute", block=1, watermark=0, prefill_cost=0.25)
    found = run(TWO, detail, capacity=8)
    assert requests_of(found, "start_step", "finish_step") == [(0, 4), (0, 6)]
    assert found.happened == Happened(
        preemptions=1,
        recomputed_tokens=5,
        moved_tokens=0,
        returned_requests=0,
        reused_tokens=0,
        pauses=0,
    )
    assert found.steps["computed"].tolist() == [0, 0, 0, 0, 5, 0]
    assert found.steps["seconds"].tolist() == [1, 1, 1, 1, 1 + 5 * 0.25, 1]
    assert found.steps["barrier_max"].tolist() == [6, 8, 5, 6, 5, 6]
    assert found.steps["blocks"].tolist() == [6, 8, 5, 6, 5, 6]


def test_swap() -> None:
    # the 5 tokens of the second go out in the step after the pre-emption, the third, and come back in the fifth
    found = run(TWO, Detail(preempt="swap", block=1, watermark=0, swap_cost=0.125), capacity=8)
    assert requests_of(found, "start_step", "finish_step") == [(0, 4), (0, 6)]
    assert found.happened == Happened(
        preemptions=1, recomputed_tokens=0, moved_tokens=10, returned_requests=0, reused_tokens=0, pauses=0
    )
    assert found.steps["seconds"].tolist() == [1, 1, 1.625, 1, 1.625, 1]


def test_watermark() -> None:
    # 3 + 6 tokens fit into 10, but not into the 8 that a watermark of a fifth leaves
    requests = [(0, 6, 2), (0, 3, 2)]
    for watermark, start in ((0.0, 0), (0.2, 2)):
        found = run(requests, Detail(preempt="recompute", block=1, watermark=watermark), capacity=10)
        assert requests_of(found, "start_step") == [(0,), (start,)]


def test_blocks() -> None:
    # two blocks of 4: two prompts of 4 fit, but after a step each needs 5 tokens, two blocks
    found = run([(0, 4, 2), (0, 4, 2)], Detail(preempt="recompute", block=4, watermark=0), capacity=11)
    assert requests_of(found, "start_step", "finish_step") == [(0, 2), (0, 3)]
    assert found.steps["blocks"].tolist() == [2, 2, 2]


def test_those_that_started_last_are_preempted_first_and_come_back_first() -> None:
    requests = [(k, 3, 9) for k in range(4)]
    found = run(requests, Detail(preempt="recompute", block=1, watermark=0), slots=4, capacity=20)
    # sizes at decision 3: 6, 5, 4, 3 = 18; decision 4: 22 > 20, so request 3 waits: 7, 6, 5 = 18; decision 5: 21, so
    # request 2 waits in front of it: 8, 7 = 15; decision 9: 12 + 11 > 20 ... request 0 ends with step 9
    assert found.steps["active"].tolist()[:6] == [1, 2, 3, 4, 3, 2]
    finish = [step for (step,) in requests_of(found, "finish_step")]
    assert finish[0] == 9
    assert finish[2] < finish[3]
    assert found.happened is not None
    assert found.happened.preemptions >= 2


def test_prompts_in_pieces() -> None:
    # 10 tokens, 4 a step: 4, 4, 2 and the first token, then the second
    found = run([(0, 10, 2)], Detail(prefill=4), slots=1)
    assert found.steps["barrier_max"].tolist() == [4, 8, 10, 11]
    assert found.steps["computed"].tolist() == [4, 4, 2, 0]
    assert found.steps["made"].tolist() == [0, 0, 1, 1]
    assert requests_of(found, "first_token_clock", "finish_clock") == [(3.0, 4.0)]


def test_decoding_comes_before_prompts() -> None:
    # step 1: the first computes 1 and makes a token, the second gets the 3 left. Step 2: the first decodes, 1; 3 left
    # complete the second, which makes its only token
    found = run([(0, 1, 5), (0, 6, 1)], Detail(prefill=4), slots=2, rule="fcfs")
    assert requests_of(found, "finish_step") == [(5,), (2,)]
    assert found.steps["barrier_max"].tolist()[:2] == [1 + 3, 2 + 6]
    assert found.steps["active"].tolist() == [2, 2, 1, 1, 1]


def test_a_prompt_that_gets_nothing_takes_no_part() -> None:
    # 4 a step: the first takes all of step 1 and 2 of step 2
    found = run([(0, 6, 1), (0, 2, 1)], Detail(prefill=4), slots=2, rule="fcfs")
    assert found.steps["active"].tolist() == [1, 2]
    assert found.steps["barrier_max"].tolist() == [4, 6 + 2]


def test_transfer() -> None:
    found = run([(0, 3, 2), (1, 3, 1)], Detail(transfer=2.5))
    # nothing runs at second 1, when the second is sent; so its memory is there at 3.5
    assert requests_of(found, "start_clock", "finish_clock") == [(2.5, 4.5), (3.5, 4.5)]


@pytest.mark.parametrize(("acceptance", "steps"), [(0.0, 7), (1.0, 3)])
def test_drafts_all_or_none_accepted(acceptance: float, steps: int) -> None:
    found = run([(0, 3, 7)], Detail(draft=2, acceptance=acceptance, draft_cost=0.5))
    assert found.num_steps == steps
    assert found.steps["seconds"].tolist() == [1.5] * steps
    assert found.steps["made"].sum() == 7


@pytest.mark.more
@pytest.mark.jit
def test_drafts_by_chance() -> None:
    # of 20,000 tokens, each step makes 1, 2 or 3 with chances 1 - p, p (1 - p) and p^2
    p = 0.6
    found = run([(0, 1, 20_000)], Detail(draft=2, acceptance=p))
    counts = np.bincount(found.steps["made"], minlength=4)[1:] / found.num_steps
    assert np.allclose(counts, [1 - p, p * (1 - p), p * p], atol=0.02)
    assert found.steps["made"].mean() == pytest.approx(1 + p + p * p, abs=0.03)


@pytest.mark.jit
def test_spread_lets_requests_differ() -> None:
    found = run([(0, 1, 2_000)] * 50, Detail(draft=1, acceptance=0.5, spread=0.4), slots=50)
    rates = 2_000 / (found.requests["finish_step"] - found.requests["start_step"]) - 1
    assert rates.min() < 0.2
    assert rates.max() > 0.8
    assert rates.mean() == pytest.approx(0.5, abs=0.1)


def test_drafted_tokens_occupy_memory() -> None:
    # 4 + 3 drafted are 7 tokens; two such need 14
    requests = [(0, 4, 1), (0, 4, 1)]
    detail = Detail(preempt="recompute", block=1, watermark=0, draft=3)
    for capacity, start in ((14, 0), (13, 1)):
        assert requests_of(run(requests, detail, capacity=capacity), "start_step") == [(0,), (start,)]


def test_a_slow_worker() -> None:
    found = run([(0, 4, 1), (0, 4, 1)], Detail(slow=((1, 2.0),)), workers=2, slots=1, per_token=1.0)
    assert found.steps["seconds"].tolist() == [1 + 2.0 * 4]


def test_fewer_slots() -> None:
    found = run([(0, 4, 1)] * 4, Detail(slots=((1, 1),)), workers=2, slots=2)
    assert found.steps["active"].tolist() == [3, 1]
    assert found.metrics().occupancy == 1.0  # of 3 slots, in the window up to the last admission


def test_drain() -> None:
    # worker 0 runs what it has and takes nothing from second 0.5 on
    found = run([(0, 4, 5), (1, 1, 1), (2, 1, 1)], Detail(drain=((0, 0.5),)), workers=2, rule="round-robin")
    assert requests_of(found, "worker", "finish_clock") == [(0, 5.0), (1, 2.0), (1, 3.0)]


def test_leave() -> None:
    # at the decision of second 2 worker 0 has left; its request has made 2 tokens, and all 6 are computed anew
    found = run([(0, 4, 4)], Detail(leave=((0, 1.5),), prefill_cost=0.5), workers=2)
    assert requests_of(found, "worker", "start_step", "finish_step", "finish_clock") == [(1, 0, 4, 2 + (1 + 3) + 1.0)]
    assert found.happened == Happened(
        preemptions=0,
        recomputed_tokens=6,
        moved_tokens=0,
        returned_requests=1,
        reused_tokens=0,
        pauses=0,
    )


def test_join() -> None:
    found = run([(0, 4, 4), (0, 4, 4)], Detail(join=((1, 1.5),)), workers=2, slots=1)
    assert requests_of(found, "worker", "start_clock") == [(0, 0.0), (1, 2.0)]


def test_a_restart() -> None:
    # the only worker is away from 1.5 to 4; the clock goes on to its return
    found = run([(0, 4, 4)], Detail(leave=((0, 1.5),), join=((0, 4.0),)))
    assert requests_of(found, "start_clock", "finish_clock") == [(0.0, 6.0)]


# A request of 2,000 tokens beside three of 10: after step 1 the plan pauses it, 4 (2001 - 11) > 1041.7 + 2001, and
# every plan after that lets it in and pauses it again, which cancels. The others end with step 3; then it alone is
# left, which nobody pauses, and its second token comes with step 4.
HEAVY = [(0, 2000, 2), (0, 10, 3), (0, 10, 3), (0, 10, 3)]


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_a_heavy_request_is_held_out_while_others_run(mode: str) -> None:
    detail = Detail(pause=mode, pause_from=1, pause_long=1999, block=1)
    found = run(HEAVY, detail, workers=4, slots=1, per_token=1.0)
    assert requests_of(found, "start_step", "finish_step") == [(0, 4), (0, 3), (0, 3), (0, 3)]
    assert found.steps["barrier_max"].tolist() == [2000, 11, 12, 2001]
    assert found.steps["active"].tolist() == [4, 3, 3, 1]
    assert found.happened is not None
    assert found.happened.pauses == 1


def test_nobody_is_paused_before_the_first_step_or_without_a_long_request() -> None:
    for detail in (
        Detail(pause="static", pause_from=4, block=1),
        Detail(pause="dynamic", pause_from=1, pause_long=2000, block=1),
    ):
        found = run(HEAVY, detail, workers=4, slots=1)
        assert requests_of(found, "finish_step") == [(2,), (3,), (3,), (3,)]
        assert found.happened is not None
        assert found.happened.pauses == 0


def test_balancing_ends_after_so_many_plans_without_a_long_request() -> None:
    """One plan without another long request is the last: the heavy one is let in again as ever, at decision 3."""
    detail = Detail(pause="dynamic", pause_from=1, pause_long=1999, pause_for=1, block=1)
    longer = [(0, 2000, 2), (0, 10, 9), (0, 10, 9), (0, 10, 9)]
    found = run(longer, detail, workers=4, slots=1)
    assert found.steps["active"].tolist() == [4, 3, 3, 4, 3, 3, 3, 3, 3]


# Prompts in blocks of 4 tokens. One worker with one slot, in order: 10 tokens are blocks 1 and 2 (the third is not
# full); 9 tokens that begin alike find both, 8, and compute 1; 8 tokens that are both blocks find 8, and compute 1, for
# a token has to be computed; 12 tokens of blocks 1, 5, 6 find 4 and compute 8.
ALIKE = [(0, 10, 1), (0, 9, 1), (0, 8, 1), (0, 12, 1)]
BLOCKS = [[1, 2, 9], [1, 2, 8], [1, 2], [1, 5, 6]]


def test_a_cache_of_prefixes_saves_what_it_holds() -> None:
    found = run(ALIKE, Detail(prefill=100, prefix_cache=40), slots=1, blocks=BLOCKS)
    assert found.steps["computed"].tolist() == [10, 1, 1, 8]
    assert found.happened is not None
    assert found.happened.reused_tokens == 8 + 7 + 4


def test_the_end_of_a_prefix_is_forgotten_before_its_beginning() -> None:
    """Two blocks are held: after 1, 5, 6 these are 5 and 1, so 1, 5 is found and 1, 2 only by its first block."""
    later = [*ALIKE, (0, 8, 1), (0, 8, 1)]
    found = run(later, Detail(prefill=100, prefix_cache=8), slots=1, blocks=[*BLOCKS, [1, 5], [1, 2]])
    assert found.steps["computed"].tolist() == [10, 1, 1, 8, 1, 4]


def test_a_worker_that_leaves_forgets() -> None:
    detail = Detail(prefill=100, prefix_cache=40)
    found = run([(0, 8, 1), (5, 9, 1)], detail, slots=1, blocks=[[1, 2], [1, 2, 3]])
    assert found.steps["computed"].tolist() == [8, 1]
    gone = Detail(prefill=100, prefix_cache=40, leave=((0, 3.0),), join=((0, 4.0),))
    found = run([(0, 8, 1), (5, 9, 1)], gone, slots=1, blocks=[[1, 2], [1, 2, 3]])
    assert found.steps["computed"].tolist() == [8, 9]


def test_rules_that_know_of_caches_go_where_a_prefix_is() -> None:
    """Both workers run one request; the third would compute 1 token beside the second one, and 9 beside the first."""
    requests, blocks = [(0, 8, 9), (0, 8, 9), (2, 9, 1)], [[7, 6], [1, 2], [1, 2, 3]]
    found = {
        rule: run(requests, Detail(prefill=100, prefix_cache=40), workers=2, rule=rule, blocks=blocks)
        for rule in ("tpu-inference", "tpu-inference:cache=no", "dynamo")
    }
    assert found["tpu-inference"].requests["worker"].tolist() == [0, 1, 1]
    assert found["tpu-inference"].steps["computed"].tolist()[2] == 1
    assert found["tpu-inference:cache=no"].requests["worker"].tolist() == [0, 1, 0]
    first, second, third = found["dynamo"].requests["worker"].tolist()
    assert first != second == third


def test_a_gate_lets_nobody_in_while_a_worker_is_full() -> None:
    """Worker 0 is full with request 0 until step 4; request 2, of second 1, waits although worker 1 is free from 2 on.

    After step 4 nobody is full, so it starts at decision 4.
    """
    requests = [(0, 5, 4), (0, 1, 2), (1, 1, 1)]
    assert requests_of(run(requests, Detail(gate="vllm-ascend"), workers=2, slots=1), "start_step") == [
        (0,),
        (0,),
        (4,),
    ]
    assert requests_of(run(requests, Detail(), workers=2, slots=1), "start_step") == [(0,), (0,), (2,)]
