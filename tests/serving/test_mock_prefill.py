"""Prefill instances: passes, blocks that are held and pulled, what is lost, and what a router has to hand over."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from serving.fleet import ask, metrics_of, on_fleet, post, stream

from lbopt.prefill import PassTime
from lbopt.serving.mock.group import Prefiller, Sequence

PREFILL = {"prefillers": 1, "pass_base": "100ms", "pass_per_token": "1ms", "prefiller_kv": 320}
PROBE = {"max_tokens": 1, "kv_transfer_params": {"do_remote_decode": True, "do_remote_prefill": False}}
PROMPT = " ".join(["word"] * 40)


async def probe(fleet, session, prompt=PROMPT):
    """What a router gets from the first prefill instance."""
    status, answer = await post(session, fleet.prefill_endpoints[0].url, {"prompt": prompt} | PROBE)
    assert status == 200
    return answer


def test_blocks_are_held_until_the_decode_worker_has_pulled_them():
    async def use(fleet, session):
        loop = asyncio.get_running_loop()
        answer = await probe(fleet, session)
        prefilled, held = loop.time(), fleet.state()["prefillers"][0]
        task = asyncio.create_task(
            stream(session, fleet.urls[0], ask(3, PROMPT) | {"kv_transfer_params": answer["kv_transfer_params"]})
        )
        await asyncio.sleep(0.04)
        on_the_way = fleet.state()["prefillers"][0]
        events, end = await task
        return answer, prefilled, held, on_the_way, events, end, fleet.state()

    setting = PREFILL | {"transfer": "10ms", "transfer_per_token": "1ms"}
    answer, prefilled, held, on_the_way, events, end, state = on_fleet(use, **setting)
    transfer = answer["kv_transfer_params"]
    assert answer["usage"] == {"prompt_tokens": 40, "total_tokens": 41, "completion_tokens": 1}
    assert transfer["do_remote_prefill"] and not transfer["do_remote_decode"]
    assert (len(transfer["remote_block_ids"]), transfer["remote_engine_id"]) == (3, "p0")
    assert round(prefilled, 9) == 0.14
    assert (held["held"], held["used_blocks"]) == (1, 3) == (on_the_way["held"], on_the_way["used_blocks"])
    assert [round(time, 9) for time, _ in events] == [0.2, 0.21, 0.22], "0.14 s, 0.05 s of transfer, then a step each"
    assert (end, state["prefillers"][0]["held"], state["prefillers"][0]["used_blocks"]) == ("done", 0, 0)
    assert state["lost_transfers"] == 0


def test_held_blocks_fill_the_memory_until_they_expire():
    """20 blocks: the third prompt waits for memory until the first two expire; what was lost is computed anew."""

    async def use(fleet, session):
        loop = asyncio.get_running_loop()
        long = " ".join(["word"] * 160)
        first = await probe(fleet, session, long)
        await probe(fleet, session, long)
        full = await metrics_of(session, fleet.prefill_endpoints[0].url)
        begin = loop.time()
        await probe(fleet, session, long)
        waited = loop.time() - begin
        late = ask(2, long) | {"kv_transfer_params": first["kv_transfer_params"]}
        events, end = await stream(session, fleet.urls[0], late)
        return full, waited, [time - loop.time() for time, _ in events], end, fleet.state()

    full, waited, times, end, state = on_fleet(use, **PREFILL, hold="30s", prefill_cost="1ms")
    assert full["vllm:kv_cache_usage_perc", 0] == 1.0
    assert round(waited, 6) == 30, "0.26 s for the second prompt, then the first blocks expire, then 0.26 s"
    assert (end, len(times), state["lost_transfers"]) == ("done", 2, 1)
    assert state["prefillers"][0]["expired"] == 2


def test_passes_take_prompts_together_up_to_their_tokens():
    async def use(fleet, session):
        loop = asyncio.get_running_loop()

        async def timed(words):
            await probe(fleet, session, " ".join(["word"] * words))
            return round(loop.time(), 9)

        return await asyncio.gather(*(timed(words) for words in (30, 50, 20)))

    assert on_fleet(use, **PREFILL, pass_tokens=60) == [0.16, 0.3, 0.3], "30 + 30 of 50, then 20 + 20"


def test_only_one_token_is_made_and_a_client_that_goes_frees_its_blocks():
    async def use(fleet, session):
        url = fleet.prefill_endpoints[0].url
        refused = await post(session, url, {"prompt": PROMPT, "max_tokens": 5})
        task = asyncio.create_task(post(session, url, {"prompt": PROMPT} | PROBE))
        await asyncio.sleep(0.05)
        busy = fleet.state()["prefillers"][0]["used_blocks"]
        task.cancel()
        await asyncio.sleep(0.05)
        plain = await post(session, url, {"prompt": PROMPT, "max_tokens": 1})
        return refused, busy, plain, fleet.state()["prefillers"][0]

    refused, busy, plain, state = on_fleet(use, **PREFILL)
    assert refused[0] == 400 and "send 1" in refused[1]["error"]["message"]
    assert busy == 3
    assert plain[0] == 200 and plain[1]["kv_transfer_params"] is None
    assert (state["used_blocks"], state["held"], state["running"]) == (0, 0, 0)


def test_a_crashed_instance_loses_what_it_held():
    async def use(fleet, session):
        answer = await probe(fleet, session)
        await fleet.prefill_endpoints[0].crash()
        body = ask(3, PROMPT) | {"kv_transfer_params": answer["kv_transfer_params"]}
        return await stream(session, fleet.urls[0], body), fleet.state()

    (events, end), state = on_fleet(use, **PREFILL)
    assert (len(events), end) == (3, "done")
    assert (state["lost_transfers"], state["prefillers"][0]["used_blocks"]) == (1, 0)


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("submit"), st.integers(1, 100)),
            st.tuples(st.just("cancel"), st.integers(0, 20)),
            st.tuples(st.just("pull"), st.integers(0, 20)),
            st.tuples(st.just("step")),
            st.tuples(st.just("empty")),
        ),
        max_size=80,
    )
)
def test_no_block_is_lost_or_given_twice(events):
    one = Prefiller("p", PassTime(0.1, 0.001), chunk=48, num_blocks=12, block=8, hold=5.0)
    now, sent, names = 0.0, [], []

    def count():
        owned = [*one._free_blocks, *(n for held in one.held.values() for n in held.blocks)]
        owned += [n for blocks in one._owned.values() for n in blocks]
        assert sorted(owned) == list(range(12))

    def step():
        nonlocal now
        begun = one.begin_step(now)
        if begun is None:
            return False
        now += begun.seconds
        for done in one.end_step():
            names.append(f"n{len(names)}")
            one.hand_over(done, names[-1], now)
        return True

    for event in events:
        if event[0] == "submit" and event[1] <= 96:
            sent.append(Sequence(event[1], 1))
            one.submit(sent[-1])
        elif event[0] == "cancel" and event[1] < len(sent):
            one.cancel(sent[event[1]])
        elif event[0] == "pull" and event[1] < len(names):
            one.pulled(names[event[1]])
        elif event[0] == "step":
            step()
        elif event[0] == "empty":
            one.empty()
        count()
    for _ in range(1000):
        if not step():
            if one.next_ready() is None:
                break
            now = one.next_ready()
        count()
    assert all(sequence.ended for sequence in sent)
