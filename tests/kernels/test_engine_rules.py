"""The rules of serving engines, decision for decision: their naive twins, and examples by hand.

The examples are worked from the sources: vLLM 00080ee1 (vllm/v1/engine/core_client.py), SGLang
(managers/data_parallel_controller.py, no commit known), TensorRT-LLM 02385f29 (_torch/pyexecutor/scheduler/
adp_router.py), tpu-inference b8692ff (core/sched/dp_scheduler.py), smg 73da68c (model_gateway/src/policies/
least_load.rs), Dynamo 07a6c9ce (lib/kv-router/src/scheduling/selector/default.rs), llm-d-router ebab687
(pkg/epp/framework/plugins/scheduling/scorer), LMDeploy 1263d5c (lmdeploy/serve/proxy/proxy.py), LightLLM 87881ae
(dp_balancer/bs.py), vllm-ascend 182b75e (examples/disaggregated_prefill_v1/load_balance_proxy_server_example.py).
"""

import random

import numpy as np
import pytest
from kernels.rules import ENGINE, many, random_observation, random_seen
from lengths import quick_and_long
from naive.engine_rules import Seen, bind_of_engine, place_of_engine, tensorrt_llm

from lbopt.exceptions import InputError
from lbopt.kernels.routing.books import entry_of
from lbopt.kernels.routing.codes import KEEPING_BOOKS
from lbopt.kernels.routing.fifo import bind
from lbopt.kernels.routing.shared_out import share_out
from lbopt.kernels.routing.state import Room, Shown, Waiting, parameters_of, turn_of
from lbopt.policies import make_policy
from lbopt.policies.decide import decide


def bound(spec, workers, uniform=0.0, start=0, capacity=None, front_ends=1):
    """The worker that the kernel binds a request to, and where the next scan begins."""
    code = make_policy(spec).code
    seen = [
        np.array([getattr(one, name) for one in workers]) for name in ("load", "running", "queued", "queued_tokens")
    ]
    books = [sum(int(entry_of(code, prompt)) for prompt in one.own_prompts) for one in workers]
    own = np.array(books if code in KEEPING_BOOKS else [], dtype=np.int64)
    turn = turn_of(start)
    parameters = parameters_of(front_ends=front_ends, kv_capacity=capacity or 0)
    chosen = bind(code, 0, parameters, Shown(*seen, own), own[:0], own[:0], np.array([[uniform, 0.5]]), turn)
    return int(chosen), int(turn.next_worker)


@pytest.mark.some(4)
@pytest.mark.parametrize("cases", quick_and_long(many(2500, 250), many(10000, 250)))
@pytest.mark.parametrize(("spec", "name"), ENGINE)
def test_rules_by_score_bind_as_their_twins(spec, name, cases):
    rng = random.Random(f"{spec} engine")
    for _ in range(cases):
        workers, capacity = random_seen(rng)
        uniform, start, front_ends = rng.random(), rng.randrange(len(workers)), rng.choice([1, 1, 2, 3, 8])
        expected = bind_of_engine(name, workers, uniform, start, capacity, front_ends)
        assert bound(spec, workers, uniform, start, capacity, front_ends) == expected, workers


@pytest.mark.some(3)
@pytest.mark.parametrize(("spec", "name"), [row for row in ENGINE if row[0] not in ("dynamo", "vllm-ascend")])
def test_frozen_states_are_decided_as_by_the_twins(spec, name):
    """In the pooled form: by the same signal, in order, among workers with a free slot; nothing is queued."""
    rng = random.Random(f"{spec} engine pooled")
    for seed in range(many(1500, 100)):
        seen = random_observation(rng)
        uniforms = np.random.default_rng(seed).random((seen.sizes.size, 2)).tolist()
        start = rng.randrange(seen.loads.size)
        state = (values.tolist() for values in (seen.loads, seen.free_slots, seen.sizes, seen.running))
        expected = place_of_engine(name, *state, uniforms, start)
        assert decide(make_policy(spec), seen, seed=seed, round_robin_at=start).tolist() == expected, seen


@pytest.mark.parametrize("spec", ["dynamo", "vllm-ascend", "tensorrt-llm"])
def test_rules_by_prompts_refuse_a_frozen_state(spec):
    with pytest.raises(InputError, match=f"policy '{spec}' goes by the prompts of running requests"):
        decide(make_policy(spec), random_observation(random.Random(1)))


def shared(prompts, slots, sizes):
    """The decision of tensorrt-llm on ranks that run requests of these prompts."""
    running = np.array([len(of_rank) for of_rank in prompts])
    held = np.array([sum(of_rank) for of_rank in prompts])
    choice = np.full(len(sizes), -1)
    sized = np.array(sizes, dtype=np.int64)
    waiting = Waiting(np.arange(len(sizes)), sized, sized, np.zeros((0, 2)), 0)
    reach = share_out(parameters_of(), Room(held, slots - running, running, held), waiting, choice)
    assert (choice[reach:] == -1).all()
    return choice.tolist()


def test_tensorrt_llm_decides_as_its_twin():
    rng = random.Random("tensorrt-llm")
    for _ in range(many(10_000, 250)):
        G, slots = rng.choice([1, 2, 3, 5, 8]), rng.randint(1, 6)
        top = rng.choice([0, 1, 3, 1000, 10**9])
        prompts = [[rng.randint(0, top) for _ in range(rng.randint(0, slots))] for _ in range(G)]
        sizes = [rng.randint(0, top) for _ in range(rng.choice([0, 1, 2, 5, 13, 40]))]
        assert shared(prompts, slots, sizes) == tensorrt_llm(prompts, slots, sizes), (prompts, slots, sizes)


def test_vllm_by_hand():
    """core_client.py, get_core_engine_for_request: 7, 5 + 2 and 2 * 3 = 6; what is in flight counts for two clients."""
    three = [Seen(running=7), Seen(running=5, queued=2), Seen(running=1, own_prompts=[9, 9, 9])]
    assert bound("vllm", three, front_ends=2) == (2, 1)
    assert bound("vllm", three, front_ends=3) == (0, 1)  # 7, 7, 9
    assert bound("vllm", three, start=1, front_ends=3) == (1, 2)  # the scan begins at rank 1
    assert bound("vllm", three, start=2, front_ends=3) == (0, 0)  # 2, 0, 1


def test_vllm_shuns_a_queue_where_the_cache_is_full():
    """Worker 0: 3 + 6 * 1 * (0.75 - 0.5) = 4.5; worker 1: 4. At half of the cache or below the queue costs nothing."""
    assert bound("vllm", [Seen(75, 2, 1), Seen(75, 4)], capacity=100) == (1, 1)
    assert bound("vllm", [Seen(50, 2, 1), Seen(50, 4)], capacity=100) == (0, 1)
    assert bound("vllm", [Seen(75, 2, 1), Seen(75, 4)]) == (0, 1)  # a capacity that nobody knows


def test_sglang_by_hand():
    """DPBudget.dispatch, total_tokens: 50 tokens against 30 + 20, then fewer requests, then the lowest rank."""
    assert bound("sglang", [Seen(50, 2), Seen(30, 1, 1, 20), Seen(60, 1)])[0] == 0
    assert bound("sglang", [Seen(50, 3), Seen(30, 1, 1, 20), Seen(60, 1)])[0] == 1
    assert bound("sglang", [Seen(51, 3), Seen(30, 1, 2, 20), Seen(49, 9)])[0] == 2


def test_tensorrt_llm_by_hand():
    """adp_router.py, route_requests: ranks hold 10, 5 and 0 prompt tokens; five more leave two or three for each.

    An even share is ceil((3 + 5) / 3) = 3. Longest first: 9 to rank 2 (0), 8 to rank 1 (5), 4 to rank 2 (9), 3 to rank
    0 (10), and 1 to rank 0, which with 13 tokens stands level with ranks 1 and 2 and comes first of equal counts.
    """
    assert shared([[10], [3, 2], []], 4, [3, 9, 1, 8, 4]) == [0, 2, 0, 1, 2]
    assert shared([[1], [5, 5, 5], [0]], 3, [7, 7, 7, 7]) == [2, 0, 2, 0]  # rank 1 is full: B = 3
    assert shared([[1], [1]], 2, [1, 2, 50]) == [1, 0, -1]  # two slots: the two oldest, longer one first


def test_tpu_inference_by_hand():
    """dp_scheduler.py: tokens to prefill, then requests; 7 resident tokens count for nothing."""
    assert bound("tpu-inference", [Seen(7, 1, 1, 30), Seen(900, 8, 1, 20), Seen(0, 0, 1, 21)])[0] == 1
    assert bound("tpu-inference", [Seen(7, 2), Seen(900, 1), Seen(0, 1)])[0] == 1


def test_smg_by_hand():
    """least_load.rs: 400 / 2000 = 0.2 s against 0.15 * 0.5 / 0.5 = 0.15; a full cache counts 0.999, 149.85."""
    assert bound("smg", [Seen(0, 9, 1, 400), Seen(50, 9)], capacity=100)[0] == 1
    assert bound("smg", [Seen(0, 9, 1, 200), Seen(50, 9)], capacity=100)[0] == 0  # 0.1 s
    assert bound("smg", [Seen(500), Seen(100, 0, 1, 2)], capacity=100)[0] == 0  # both full; two tokens are 1 ms
    assert bound("smg", [Seen(50, 9), Seen(0, 0)])[0] == 0  # a capacity that nobody knows: first in the list


def test_dynamo_by_hand():
    """selector/default.rs: prompts of 17 and 16 tokens are 2 and 1 blocks; equal ones are drawn."""
    workers = [Seen(own_prompts=[17]), Seen(own_prompts=[16]), Seen(own_prompts=[1]), Seen(own_prompts=[16, 1])]
    assert [bound("dynamo", workers, uniform)[0] for uniform in (0.0, 0.49, 0.5, 0.99)] == [1, 1, 2, 2]


def test_llm_d_by_hand():
    """scorer: queue (2 - w) / 2, running (4 - r) / 2, cache 1 - u: 1.9, 2.5 and 1.5."""
    workers = [Seen(10, 4, 0), Seen(50, 2, 0), Seen(50, 2, 2)]
    assert bound("llm-d", workers, capacity=100)[0] == 1
    assert bound("llm-d", [Seen(10, 4, 0), Seen(50, 2, 2), Seen(10, 4, 0)], 0.6, capacity=100)[0] == 2  # 1.9, 1.5, 1.9
    assert bound("llm-d", [Seen(60, 3, 1), Seen(40, 3, 1)], capacity=100)[0] == 1  # equal counts score 1 each


def test_counts_by_hand():
    """proxy.py (LMDeploy) counts its own requests, bs.py (LightLLM) all; both draw. vllm-ascend adds prompts."""
    workers = [Seen(0, 4, 0, 0, [9]), Seen(0, 1, 3, 9, []), Seen(0, 2, 1, 1, [2, 3])]
    assert bound("lmdeploy", workers, 0.9)[0] == 1
    assert bound("lightllm", workers, 0.9)[0] == 2
    assert [bound("lightllm", workers[:2], uniform)[0] for uniform in (0.2, 0.7)] == [0, 1]
    assert bound("vllm-ascend", [workers[0], workers[2]])[0] == 1  # 9 against 5
    assert bound("vllm-ascend", [Seen(own_prompts=[5]), workers[2]])[0] == 0  # the earliest of equal ones
