"""The mock over HTTP, on a virtual clock: shapes of answers, times of tokens, ranks, metrics, lengths, memory."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from serving.fleet import ask, metrics_of, on_fleet, post, stream, text_of

from lbopt.hardware import make_step_time
from lbopt.instances import open_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.serving.load.config import Bodies, LoadConfig
from lbopt.serving.mock.fleet import StepLog
from lbopt.serving.mock.protocol import make_lengths
from lbopt.serving.mock.setting import MockSetting
from lbopt.simulator import SimulationSetting, TraceTimes, simulate

USAGE = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}


def test_a_stream_has_a_token_a_step_and_usage_where_it_was_asked_for():
    async def use(fleet, session):
        return await stream(session, fleet.urls[0], ask(3) | USAGE), await stream(session, fleet.urls[0], ask(3))

    (events, end), (plain, _) = on_fleet(use)
    assert end == "done"
    assert [round(time, 9) for time, _ in events] == [0.01, 0.02, 0.03, 0.03]
    assert [event["usage"]["completion_tokens"] for _, event in events] == [1, 2, 3, 3]
    assert events[-1][1]["choices"] == []
    assert events[-1][1]["usage"] == {"prompt_tokens": 7, "total_tokens": 10, "completion_tokens": 3}
    choices = [event["choices"][0] for _, event in events[:-1]]
    assert [one["finish_reason"] for one in choices] == [None, None, "length"]
    assert len(text_of(events).split()) == 3
    assert [event.get("usage") for _, event in plain] == [None] * 3
    assert len({json.dumps(sorted(event)) for _, event in plain}) == 1, "the last event has the same fields"


def test_a_chat_begins_with_its_role_and_a_body_holds_the_text_of_the_stream():
    body = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 4, "ignore_eos": True}

    async def use(fleet, session):
        events, end = await stream(session, fleet.urls[0], body, "/v1/chat/completions")
        return events, end, await post(session, fleet.urls[1], body, "/v1/chat/completions")

    events, end, (status, whole) = on_fleet(use)
    deltas = [event["choices"][0]["delta"] for _, event in events]
    assert (end, status) == ("done", 200)
    assert deltas[0] == {"role": "assistant", "content": ""}
    message = whole["choices"][0]["message"]
    assert message["content"] == "".join(delta["content"] for delta in deltas)
    assert whole["object"] == "chat.completion" and events[0][1]["object"] == "chat.completion.chunk"
    assert whole["usage"] == {"prompt_tokens": 3, "total_tokens": 7, "completion_tokens": 4}


def test_tools_and_logprobs_are_plausible():
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]
    chat = {"messages": [{"role": "user", "content": "one"}], "max_tokens": 3, "ignore_eos": True}

    async def use(fleet, session):
        called = chat | {"tools": tools, "tool_choice": "required"}
        events, _ = await stream(session, fleet.urls[0], called, "/v1/chat/completions")
        whole = await post(session, fleet.urls[0], called, "/v1/chat/completions")
        probable = await post(session, fleet.urls[0], ask(3, logprobs=2))
        spoken = await post(session, fleet.urls[0], chat | {"logprobs": True}, "/v1/chat/completions")
        return events, whole[1], probable[1], spoken[1]

    events, whole, probable, spoken = on_fleet(use)
    call = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    pieces = [event["choices"][0]["delta"]["tool_calls"][0]["function"] for _, event in events]
    assert call["name"] == pieces[0]["name"] == "look_up"
    assert "".join(piece["arguments"] for piece in pieces) == call["arguments"]
    assert len(json.loads(call["arguments"])["text"].split()) == 3
    assert whole["choices"][0]["finish_reason"] == "tool_calls"
    text, given = probable["choices"][0]["text"], probable["choices"][0]["logprobs"]
    assert "".join(given["tokens"]) == text
    assert [len(top) for top in given["top_logprobs"]] == [3, 3, 3]
    ends = [*given["text_offset"][1:], None]
    assert [text[a:b] for a, b in zip(given["text_offset"], ends, strict=True)] == given["tokens"]
    assert len(spoken["choices"][0]["logprobs"]["content"]) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"max_tokens": 3}, "prompt is neither"),
        ({"prompt": ""}, "prompt is empty"),
        ({"prompt": ["a", "b"]}, "one prompt a request"),
        ({"prompt": "a", "n": 2}, "one choice"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens is 0"),
        ({"prompt": "a", "max_tokens": "many"}, 'max_tokens is "many"'),
        ({"prompt": "a", "max_tokens": 10**6}, "together at most 131072"),
        ({"prompt": "a", "stream_options": 3}, "stream_options"),
        ([], "not a JSON object"),
    ],
)
def test_what_an_engine_refuses_is_refused_in_one_sentence(body, said):
    async def use(fleet, session):
        return await post(session, fleet.urls[0], body)

    status, answer = on_fleet(use)
    assert status == 400
    assert said in answer["error"]["message"]


def test_ranks_of_one_endpoint_are_chosen_by_the_header():
    async def use(fleet, session):
        assert len(fleet.urls) == 1
        url = fleet.urls[0]
        tasks = [asyncio.create_task(stream(session, url, ask(20), **{"X-Data-Parallel-Rank": "2"})) for _ in range(3)]
        await asyncio.sleep(0.055)
        seen = await metrics_of(session, url)
        await asyncio.gather(*tasks)
        wrong = [await post(session, url, ask(), **{"X-Data-Parallel-Rank": text}) for text in ("3", "-1", "x")]
        tasks = [asyncio.create_task(stream(session, url, ask(9))) for _ in range(6)]
        await asyncio.sleep(0.055)
        spread = await metrics_of(session, url)
        await asyncio.gather(*tasks)
        return seen, wrong, spread, await metrics_of(session, url)

    seen, wrong, spread, after = on_fleet(use, workers=3, slots=2, one_endpoint=True)
    running, waiting = "vllm:num_requests_running", "vllm:num_requests_waiting"
    assert [seen[running, rank] for rank in range(3)] == [0, 0, 2]
    assert [seen[waiting, rank] for rank in range(3)] == [0, 0, 1]
    assert [status for status, _ in wrong] == [400, 400, 400]
    assert [spread[running, rank] for rank in range(3)] == [2, 2, 2]
    assert after["vllm:generation_tokens_total", 2] == 60 + 2 * 9
    assert sum(after["vllm:prompt_tokens_total", rank] for rank in range(3)) == 9 * 7


def test_metrics_models_health_and_tokenize():
    async def use(fleet, session):
        url = fleet.urls[0]
        await stream(session, url, ask(5))
        found = []
        for path in ("/health", "/v1/models", "/metrics", "/version"):
            async with session.get(url + path) as response:
                found.append((response.status, await response.text()))
        words = await post(session, url, {"prompt": "a b a"}, "/tokenize")
        chat = {"messages": [{"role": "user", "content": "one two"}]}
        return found, words, await post(session, url, chat, "/tokenize")

    found, (_, tokens), (_, chat) = on_fleet(use, kv_capacity=1600)
    assert [status for status, _ in found] == [200] * 4
    assert json.loads(found[1][1])["data"][0]["id"] == "deepseek-v3"
    for line in (
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0',
        'vllm:request_success_total{engine="0",finished_reason="length",model_name="deepseek-v3"} 1.0',
        'vllm:time_to_first_token_seconds_sum{engine="0",model_name="deepseek-v3"} 0.01',
        'vllm:kv_cache_usage_perc{engine="0",model_name="deepseek-v3"} 0.0',
    ):
        assert line in found[2][1]
    assert tokens["count"] == 3 and tokens["tokens"][0] == tokens["tokens"][2] != tokens["tokens"][1]
    assert chat["count"] == 2


def test_lengths_are_drawn_by_the_prompt_where_nobody_insists():
    """Equal prompts get equal lengths on any worker; the mean is that of the law; limits hold."""

    async def use(fleet, session):
        found = []
        for url in fleet.urls:
            answers = [await post(session, url, {"prompt": f"prompt {i}", "max_tokens": 40}) for i in range(30)]
            found.append(
                [(one["usage"]["completion_tokens"], one["choices"][0]["finish_reason"]) for _, one in answers]
            )
        return found

    first, second = on_fleet(use, lengths="geometric:mean=20")
    assert first == second
    assert {reason for _, reason in first} == {"stop", "length"}
    assert all((count == 40) == (reason == "length") for count, reason in first)
    draw = make_lengths("geometric:mean=20")
    drawn = [draw(int(digest)) for digest in np.random.default_rng(1).integers(0, 2**63, 20_000, dtype=np.uint64) * 2]
    assert min(drawn) == 1 and abs(np.mean(drawn) - 20) < 0.5
    outputs = set(open_trace("azure-like", count=4096, seed=0).output.tolist())
    assert {make_lengths("azure-like")(digest) for digest in range(50)} <= outputs
    assert make_lengths("max-tokens")(7) is None


def test_events_of_several_tokens_and_pieces_of_several_events_carry_all_of_it():
    async def use(fleet, session):
        return await stream(session, fleet.urls[0], ask(20) | USAGE)

    plain, _ = on_fleet(use)
    several, _ = on_fleet(use, chunk_tokens=8)
    joined, _ = on_fleet(use, wire="joined")
    split, end = on_fleet(use, wire="split")
    assert [event["usage"]["completion_tokens"] for _, event in several] == [1, 9, 17, 20, 20]
    assert text_of(plain) == text_of(several) == text_of(joined) == text_of(split)
    assert [time for time, _ in split] == [time for time, _ in plain]
    times = [round(time, 9) for time, _ in joined]
    assert times[:4] == [0.02, 0.02, 0.04, 0.04], "two events come in one piece, with the second of them"
    assert end == "done"


def test_a_preempted_request_ends_recomputed_and_its_continuation_makes_the_rest():
    """As a router does it: the tokens made join the prompt, the limit shrinks by them, and no word is lost or twice."""
    prompt = " ".join(["word"] * 30)

    async def use(fleet, session):
        url = fleet.urls[0]
        both = [asyncio.create_task(stream(session, url, ask(20, prompt))) for _ in range(2)]
        (old, _), (young, end) = await asyncio.gather(*both)
        made = text_of(young)
        rest = ask(20 - len(made.split()), prompt + made)
        return old, young, end, await stream(session, url, rest)

    old, young, end, (rest, _) = on_fleet(use, workers=1, kv_capacity=64, watermark=0.0, preempt="stop")
    last = young[-1][1]["choices"][0]
    assert (last["finish_reason"], last["stop_reason"], end) == ("stop", "recomputed", "done")
    assert 0 < len(text_of(young).split()) < 20
    assert text_of(young) + text_of(rest) == text_of(old)
    assert old[-1][1]["choices"][0]["stop_reason"] is None


def test_a_request_that_is_sent_because_a_slot_became_free_joins_the_very_next_step():
    """Beside a long stream, requests of three tokens follow each other without a step between them."""

    async def use(fleet, session):
        loop = asyncio.get_running_loop()
        long, ends = asyncio.create_task(stream(session, fleet.urls[0], ask(50))), []
        await asyncio.sleep(0.015)
        for _ in range(5):
            await stream(session, fleet.urls[0], ask(3))
            ends.append(round(loop.time(), 9))
        await long
        return ends

    assert on_fleet(use, workers=1, slots=2) == [0.05, 0.08, 0.11, 0.14, 0.17]


def test_a_client_that_goes_frees_its_slot_and_its_place_in_the_queue():
    async def use(fleet, session):
        url = fleet.urls[0]
        tasks = [asyncio.create_task(stream(session, url, ask(1000))) for _ in range(6)]
        await asyncio.sleep(0.1)
        before = await metrics_of(session, url)
        for task in (tasks[0], tasks[5]):
            task.cancel()
        await asyncio.sleep(0.1)
        between = await metrics_of(session, url)
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0.1)
        return before, between, await metrics_of(session, url), fleet.state()

    before, between, after, state = on_fleet(use, kv_capacity=100_000)
    names = [("vllm:num_requests_running", 0), ("vllm:num_requests_waiting", 0)]
    assert [[found[name] for name in names] for found in (before, between, after)] == [[4, 2], [4, 0], [0, 0]]
    assert state["groups"][0]["workers"][0]["blocks"] == 0


@pytest.mark.parametrize("law", ["affine", "roofline:device=h800,model=deepseek-v3"])
def test_over_http_loads_and_seconds_are_those_of_the_simulator(law):
    """Requests of a trace, sent at their times to the workers that the simulator chose: equal step by step."""
    trace = open_trace("azure-like", count=150, seed=4)
    setting = SimulationSetting(Fleet(3, 8), arrivals=TraceTimes(load=0.9), step_time=make_step_time(law))
    run = simulate(trace, make_policy("jsq"), setting, keep_loads=True)
    logs = []

    async def use(fleet, session):
        loop = asyncio.get_running_loop()
        bodies = Bodies(trace, LoadConfig(urls=("http://x",)), "m")

        async def send(number):
            url = fleet.urls[run.requests["worker"][number]]
            async with session.post(url + "/v1/completions", data=bodies.of(number)) as response:
                await response.read()
            return loop.time()

        logs.append(fleet)
        tasks = []
        for number, when in enumerate(run.requests["reveal_clock"].tolist()):
            if when > loop.time():
                future = loop.create_future()
                loop.call_at(when, future.set_result, None)
                await future
            tasks.append(asyncio.create_task(send(number)))
        return await asyncio.gather(*tasks)

    from lbopt.serving.mock import fleet as module

    started = module.MockFleet.start

    async def start_with_log(self):
        logs.append(StepLog(self))
        await started(self)

    module.MockFleet.start = start_with_log
    try:
        ends = on_fleet(use, workers=3, slots=8, step_time=law)
    finally:
        module.MockFleet.start = started
    steps = [step for _, _, step in logs[0].rows]
    assert np.array_equal([step.loads for step in steps], run.steps["barrier_loads"])
    assert np.array_equal([step.seconds for step in steps], run.steps["seconds"])
    assert np.array_equal(ends, run.requests["finish_clock"])


def test_a_setting_that_makes_no_fleet_is_refused():
    from lbopt.exceptions import InputError

    for given, said in (
        ({"workers": 8, "groups": 3}, "do not form 3 groups"),
        ({"slots": 0}, "slots is 0"),
        ({"wire": "torn"}, "unknown wire 'torn'"),
        ({"preempt": "stop"}, "give the KV capacity"),
        ({"kv_capacity": 15}, "at least a block of 16"),
        ({"watermark": 1.0}, "watermark is 1"),
        ({"prefillers": -1}, "prefillers is -1"),
        ({"port": 70_000}, "port is 70000"),
        ({"port": 10**400}, "port is a whole number of 1,329 bits"),
        ({"workers": 10**400, "groups": 1}, "workers is a whole number of 1,329 bits and slots 72; expected at most"),
        ({"port": 65_535}, "leaves no port"),
        ({"transfer": "x"}, "transfer is 'x'"),
        ({"fault": ("crash:worker=0,at=soon",)}, "at is 'soon'"),
        ({"device": "abacus"}, "abacus"),
        ({"lengths": "geometric:mean=0"}, "at least 1 token"),
    ):
        with pytest.raises(InputError, match=said):
            MockSetting(**given)
