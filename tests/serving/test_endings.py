"""What counts as whose fault, and workers that are named without their group."""

from __future__ import annotations

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run, stream
from serving.fleet import ask, on_router, post
from serving.fleet import stream as mock_stream
from serving.test_hostile_engines import Raw, events, status

from lbopt.serving.router.fleet_file import fleet_of

LATE = b'data: {"error":{"message":"too long","type":"BadRequestError","param":null,"code":400}}\n\ndata: [DONE]\n\n'


def test_what_a_client_did_wrong_is_no_failure_of_an_engine():
    """The mock finds fault as vLLM does: counted apart, and no time to a first token."""

    async def use(router, engines, session, base):
        codes = [(await post(session, base, body))[0] for body in ({"prompt": ""}, ask(10**6), {"n": "x"})]
        codes.append((await mock_stream(session, base, {"prompt": ""}))[1])
        await mock_stream(session, base, ask(2))
        return codes, dict(router.fleet.endings), router.metrics.text().decode()

    codes, endings, text = on_router(use)
    assert codes == [400, 400, 400, "status-400"]
    assert endings == {"rejected": 4, "finished": 1}
    assert "lbopt_time_to_first_token_seconds_count 1.0" in text
    assert 'lbopt_requests_total{ending="rejected"} 4.0' in text


@pytest.mark.parametrize(
    ("answer", "ending"),
    [
        (status(404), "rejected"),
        (events(LATE), "rejected"),
        (status(200, body=LATE[6:].partition(b"\n")[0]), "rejected"),
        (status(429), "failed"),
        (status(500), "failed"),
        (status(307), "failed"),
    ],
)
def test_whose_fault_an_answer_tells(answer, ending):
    async def check():
        async with fleet([Raw(answer)], retries=0) as (router, client, base):
            await stream(client, base)
            await becomes(lambda: is_empty(router))
            assert router.fleet.endings == {ending: 1}

    run(check())


def test_a_gateway_is_told_an_engine_for_what_generates_nothing():
    """All places are taken: no place is needed, and nothing is to be reported."""

    async def check():
        async with fleet([Engine()], slots=1, advised=True) as (router, client, base):
            found = []
            for asked in ({"prompt_tokens": 5}, {"place": False}, {"place": False, "model": "x"}):
                async with client.post(base + "/route", json=asked) as answer:
                    told = await answer.json()
                    found.append((answer.status, told.get("worker"), told.get("id") is None))
            name = router.fleet.groups["g"].workers[0].name
            assert found == [(200, name, False), (200, name, True), (404, None, True)]
            assert router.fleet.arrivals == 1

    run(check())


@pytest.mark.parametrize("ending", ["cancelled", "rejected", "failed"])
def test_a_gateway_says_how_a_request_ended(ending):
    async def check():
        async with fleet([Engine()], advised=True) as (router, client, base):
            async with client.post(base + "/route", json={"prompt_tokens": 5, "n": 2, "prompts": 2}) as answer:
                key = (await answer.json())["id"]
            assert router.fleet.groups["g"].workers[0].load == 10
            assert router.fleet.groups["g"].workers[0].seated == 4
            async with client.post(f"{base}/route/{key}", json={"ending": ending}) as answer:
                assert await answer.json() == {"ended": True}
            assert router.fleet.endings == {ending: 1}

    run(check())


def test_a_worker_needs_its_group_where_several_have_its_name():
    async def check():
        engines = [Engine() for _ in range(3)]
        token = {"Authorization": "Bearer admin-token"}

        def plan():
            names = [[("one", 0), ("two", 1)], [("one", 2)]]
            groups = [[{"name": name, "url": engines[n].url} for name, n in of] for of in names]
            tables = [{"name": g, "model": "m", "slots": 1, "worker": w} for g, w in zip("ab", groups, strict=True)]
            return fleet_of({"group": tables})

        async with fleet(engines, plan=plan, admin_token="admin-token") as (_, client, base):
            found = []
            for path in ("two/drain", "one/drain", "one/drain?group=b", "two/drain?group=b", "three/drain"):
                async with client.post(f"{base}/workers/{path}", headers=token) as answer:
                    found.append((answer.status, (await answer.json()).get("group")))
            assert found == [(200, "a"), (404, None), (200, "b"), (404, None), (404, None)]

    run(check())
