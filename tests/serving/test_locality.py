"""The rule that goes by experts on a live fleet: who has which centroid, where signatures are from, end to end."""

from __future__ import annotations

import asyncio

import aiohttp
import numpy as np
import pytest
from locality import naive_routing as naive
from serving.engines import Engine, becomes, fleet, is_empty, run, stream
from serving.fleet import ask

from lbopt.exceptions import InputError
from lbopt.locality import (
    MoEShape,
    RoutingTable,
    counts_as_text,
    counts_of_text,
    draw_workload,
    fit_routing,
    task_workload,
    write_table,
)
from lbopt.policies import make_policy
from lbopt.serving.locality import LocalityRule
from lbopt.serving.mock.fleet import MockFleet
from lbopt.serving.mock.setting import MockSetting
from lbopt.serving.process import quiet
from lbopt.serving.router.fleet_file import fleet_of
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.run import Server
from lbopt.serving.router.service import Router
from lbopt.serving.router.signatures import HEADER, KEY_HEADER, Recollection, Signature
from lbopt.serving.rule import LiveRule
from lbopt.serving.state import FleetState
from tools.virtual_clock import run_virtual

SHAPE = MoEShape(2, 6, 1)
#: Three workers: each is near to requests that use two experts of each layer.
CENTROIDS = np.kron(np.eye(3), [1.0, 1.0])[:, None].repeat(2, axis=1).reshape(3, 12) / 2
TOKEN = "admin-token-1"


def table_file(folder, names=("a", "b", "c"), centroids=CENTROIDS, **more):
    """A routing table in a file."""
    table = RoutingTable("", SHAPE, "count", None, np.arange(2), centroids, workers=names, **more)
    write_table(table, folder / "table.npz")
    return folder / "table.npz", table


def counts(kind, tokens=10):
    """Counts of a request that is nearest to worker `kind`."""
    found = np.zeros((2, 6), dtype=np.int64)
    found[:, 2 * kind] = tokens
    return found


def group_of(names, bound=None):
    """A group of workers, with so many requests bound to each."""
    state = FleetState()
    group = state.add_group("g", "m")
    for name in names:
        worker = state.worker_up("g", name, 8)
        for _ in range((bound or {}).get(name, 0)):
            tracker = state.arrived("m", 5, 0.0)
            state.prefilled(tracker, 0.0)
            state.dispatched(tracker, worker, 0.0)
    return state, group


def chosen(rule, group, signature):
    return group.open_workers[rule.choose(group.open_workers, signature)].name


def of(kind):
    return Signature(counts(kind), is_own=True)


@pytest.mark.more
def test_workers_are_found_by_name_whatever_their_order(tmp_path):
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    for names in ("abc", "cab", "bca"):
        _, group = group_of(names)
        assert [chosen(rule, group, of(kind)) for kind in range(3)] == ["a", "b", "c"]


def test_other_names_take_centroids_in_order_and_keep_them(tmp_path):
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    state, group = group_of(["x", "b", "y"])
    assert [chosen(rule, group, of(kind)) for kind in range(3)] == ["x", "b", "y"]
    state.draining(state.worker("g", "x"), leave=True)
    state.worker_up("g", "z", 8)
    assert [worker.name for worker in group.workers] == ["b", "y", "z"]
    assert [chosen(rule, group, of(kind)) for kind in range(3)] == ["z", "b", "y"]


def test_a_closed_worker_keeps_its_centroid_and_its_requests_go_to_the_next(tmp_path):
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    state, group = group_of("abc", {"c": 2})
    state.draining(state.worker("g", "a"))
    assert chosen(rule, group, of(0)) == "b"  # as near as c, and less busy
    state.worker_up("g", "a", 8)
    assert chosen(rule, group, of(0)) == "a"


def test_a_worker_without_a_centroid_takes_what_it_has_fewer_of(tmp_path):
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    state, group = group_of("abcd", {"a": 1, "d": 1})
    assert chosen(rule, group, of(0)) == "a" and rule.place_of("d") == -1
    tracker = state.arrived("m", 5, 0.0)
    state.prefilled(tracker, 0.0)
    state.dispatched(tracker, state.worker("g", "a"), 0.0)
    assert chosen(rule, group, of(0)) == "d"
    for name in "abc":
        state.draining(state.worker("g", name))
    assert chosen(rule, group, of(0)) == "d"


def test_without_a_signature_a_request_goes_to_the_least_loaded(tmp_path):
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    _, group = group_of("abc", {"a": 1, "b": 2, "c": 1})
    assert chosen(rule, group, None) == "a"
    _, group = group_of("abc", {"a": 1, "b": 2})
    assert chosen(rule, group, None) == "c"


def test_choices_are_the_naive_ones(tmp_path):
    rng = np.random.default_rng(3)
    centroids = rng.random((5, 12))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    names = tuple("abcde")
    path, table = table_file(tmp_path, names, centroids)
    rule = LocalityRule(str(path), 0.05, num_workers=5)
    for _ in range(100):
        asked = rng.integers(1, 30, size=(2, 6))
        bound = dict(zip(names, rng.integers(0, 3, 5).tolist(), strict=True))
        near = naive.similarities(asked.ravel().tolist(), table.centroids.tolist())
        _, group = group_of(names, bound)
        best = naive.route(near, list(bound.values()), 0.05)
        assert chosen(rule, group, Signature(asked, is_own=True)) == names[best]


def test_tables_that_cannot_be_served(tmp_path):
    path, table = table_file(tmp_path)
    with pytest.raises(InputError, match="has 3 centroids and the group 4 workers; fit it again with --workers 4"):
        LocalityRule(str(path), 0.1, num_workers=4)
    write_table(RoutingTable("", SHAPE, "gate-prob", None, np.arange(2), CENTROIDS), path)
    with pytest.raises(InputError, match="a live router is told counts alone"):
        LocalityRule(str(path))
    write_table(table, path)
    rule = LiveRule(make_policy(f"eldr:table={path},tau=0.25"), num_workers=3, slots=4)
    assert rule.locality.tau == pytest.approx(0.25) and rule.is_immediate
    with pytest.raises(InputError, match=r"name it: eldr:table=FILE"):
        LiveRule(make_policy("eldr"), num_workers=3, slots=4)


def test_no_file_and_a_smaller_table_before_any_request(tmp_path):
    with pytest.raises(InputError, match=r"eldr is given no file; name one .*: eldr:table=FILE"):
        LocalityRule("")
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    table_file(tmp_path, ("a", "b"), CENTROIDS[:2])
    with pytest.raises(InputError, match="has 2 centroids and the group 3 workers; fit it again with --workers 3"):
        rule.check(rule.prepare())


def test_workers_that_the_table_does_not_name_are_told(tmp_path, caplog):
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    _, group = group_of("abc")
    chosen(rule, group, of(0))
    assert not caplog.records
    _, group = group_of(["a", "x", "y"])
    chosen(rule, group, of(0))
    chosen(rule, group, of(1))
    (record,) = caplog.records
    assert "has no centroid for x, y; they have taken those of workers that are not there" in record.getMessage()
    _, group = group_of(["a", "b", "c", "x"])
    chosen(rule, group, of(0))
    assert "for x; those without one take requests where they have fewer" in caplog.records[1].getMessage()


def test_a_worker_that_comes_back_has_its_own_centroid_again(tmp_path):
    """Also where another has taken it meanwhile."""
    rule = LocalityRule(str(table_file(tmp_path)[0]), 0.1, num_workers=3)
    state, group = group_of("abc")
    state.draining(state.worker("g", "b"), leave=True)
    state.worker_up("g", "x", 8)
    assert [chosen(rule, group, of(kind)) for kind in range(3)] == ["a", "x", "c"]
    state.draining(state.worker("g", "c"), leave=True)
    state.worker_up("g", "b", 8)
    assert [chosen(rule, group, of(kind)) for kind in range(3)] == ["a", "b", "x"]


# -- counts on the way


@pytest.mark.parametrize("layers", [None, [3, 1]])
def test_counts_come_back_from_their_text(layers):
    rng = np.random.default_rng(0)
    shape, kept = MoEShape(4, 8, 2), np.array([3, 1])
    told = rng.integers(0, 300, size=(4, 8))
    back = counts_of_text(counts_as_text(told, layers), shape, kept)
    assert np.array_equal(back, told if layers is None else np.where(np.isin(np.arange(4), layers)[:, None], told, 0))
    large = counts_as_text(told * 100_000 + (told == 0))
    found = counts_of_text(large, shape, kept)
    assert found.max() <= 65535 and (found > 0).all()
    assert np.allclose(found / found.sum(), (told * 100_000) / (told * 100_000).sum(), atol=1e-4)


@pytest.mark.parametrize("text", ["", "!", "aGVsbG8=", counts_as_text(np.ones((3, 6), int)), "eJw=" * 3])
def test_what_is_no_text_of_counts(text):
    with pytest.raises(InputError, match="the experts of the request are"):
        counts_of_text(text, SHAPE, np.arange(2))


def test_a_text_that_would_unfold_without_end_is_cut(tmp_path):
    with pytest.raises(InputError, match="25 bytes; expected 24"):
        counts_of_text(counts_as_text(np.zeros((1000, 1000), int)), SHAPE, np.arange(2))
    with pytest.raises(InputError, match="expected whole numbers"):
        counts_as_text(np.ones((2, 2)))


def test_what_is_not_used_is_forgotten_first():
    memory = Recollection(2)
    one, two = np.full(2, 0.5, np.float32), np.array([1.0, 0.0], np.float32)
    memory.add("a", one)
    memory.add("b", one)
    assert memory.find("a") is one
    memory.add("c", one)
    assert memory.find("b") is None and len(memory) == 2
    memory.add("a", two)
    assert memory.find("a").tolist() == [0.75, 0.25]
    nothing = Recollection(0)
    nothing.add("a", one)
    assert nothing.find("a") is None


# -- over HTTP


def served(engines, path, **options):
    """A router before engines that are called a, b, c."""

    def plan():
        workers = [{"url": e.url, "name": name} for e, name in zip(engines, "abc", strict=True)]
        advised = options.get("advised", False)
        return fleet_of({"group": [{"model": "m", "slots": 8, "workers": workers, "advised": advised}]})

    return fleet(engines, plan=plan, policy=f"eldr:table={path}", prefix_bytes=64, **options)


def count_of(engines):
    return [len(engine.requests) for engine in engines]


def test_signatures_of_headers_prefixes_and_keys(tmp_path):
    """What a header said is remembered for requests that begin alike, and for its key; the rest goes to the idle."""

    async def check():
        path, _ = table_file(tmp_path)
        engines = [Engine(tokens=2) for _ in range(3)]
        async with served(engines, path) as (router, client, base):
            talk = "a conversation of some length " * 5
            client.headers[HEADER], client.headers[KEY_HEADER] = counts_as_text(counts(2)), "tenant-7"
            await stream(client, base, prompt=talk)
            assert count_of(engines) == [0, 0, 1]
            _, headers, _ = engines[2].requests[0]
            assert not {HEADER.lower(), KEY_HEADER.lower()} & {name.lower() for name in headers}
            del client.headers[HEADER], client.headers[KEY_HEADER]
            await stream(client, base, prompt=talk + " and what of this?")  # begins alike
            assert count_of(engines) == [0, 0, 2]
            await stream(client, base, prompt="quite another beginning, that nobody has sent before " * 3)
            assert count_of(engines) == [1, 0, 2]  # nobody knows: the least loaded
            client.headers[KEY_HEADER] = "tenant-7"
            await stream(client, base, prompt="a third beginning, by the same tenant " * 3)
            assert count_of(engines) == [1, 0, 3]
            client.headers[HEADER] = "nonsense"
            await stream(client, base, prompt="x")
            assert count_of(engines) == [1, 0, 4]  # an unreadable header is as none: the key decides
            expected = {"header": 1, "prefix": 1, "key": 2, "none": 1, "unreadable": 1}
            assert router.signatures.sources == expected
            await becomes(lambda: is_empty(router))
            text = router.metrics.text().decode()
            assert 'lbopt_locality_requests_total{source="prefix"} 1.0' in text
            assert f'table="{router.dispatcher.rules["group-0"].locality.table_id}"' in text

    run(check())


def test_what_an_engine_says_is_remembered_and_kept_from_clients(tmp_path):
    """The first request of a conversation goes anywhere; the engine's header tells where the second belongs."""

    async def check():
        path, _ = table_file(tmp_path)
        engines = [Engine(tokens=2) for _ in range(3)]
        for engine in engines:
            engine.answer_headers = {HEADER: counts_as_text(counts(1))}
        async with served(engines, path) as (router, client, base):
            talk = "the system prompt of an application " * 4
            body = {"model": "m", "prompt": talk}
            async with client.post(base + "/v1/completions", json=body) as response:
                assert response.status == 200 and HEADER not in response.headers
            assert count_of(engines) == [1, 0, 0] and router.signatures.learned == 1
            await stream(client, base, prompt=talk + "second")
            assert count_of(engines) == [1, 1, 0]

    run(check())


def test_a_gateway_may_say_it(tmp_path):
    """`POST /route` takes the same text, and a key."""

    async def check():
        path, _ = table_file(tmp_path)
        engines = [Engine(tokens=2) for _ in range(3)]
        async with served(engines, path, advised=True) as (_, client, base):

            async def route(**more):
                body = {"model": "m", "prompt_tokens": 9} | more
                async with client.post(base + "/route", json=body) as answer:
                    return (await answer.json())["worker"]

            assert await route(experts=counts_as_text(counts(1)), locality_key="k") == "b"
            assert await route(locality_key="k") == "b"
            assert await route() == "a"

    run(check())


def test_a_table_is_exchanged_while_requests_come(tmp_path):
    """By the admin token alone; a table that does not fit leaves the old one, and what is remembered is forgotten."""

    async def check():
        path, table = table_file(tmp_path)
        engines = [Engine(tokens=2) for _ in range(3)]
        async with served(engines, path, admin_token=TOKEN) as (router, client, base):
            rule = router.dispatcher.rules["group-0"].locality

            async def reload(token=TOKEN):
                headers = {"Authorization": f"Bearer {token}"}
                async with client.post(base + "/locality/reload", headers=headers) as answer:
                    return answer.status, await answer.json()

            client.headers[HEADER] = counts_as_text(counts(0))
            await stream(client, base, prompt="x" * 100)
            assert count_of(engines) == [1, 0, 0] and router.signatures.remembered["m"] > 0
            assert (await reload("wrong-token"))[0] == 401
            table_file(tmp_path, centroids=CENTROIDS[[1, 0, 2]])
            status, told = await reload()
            assert status == 200 and told == {"tables": [rule.table_id]} and rule.table_id != table.table_id
            assert router.signatures.remembered["m"] == 0
            await stream(client, base, prompt="x" * 100)
            assert count_of(engines) == [1, 1, 0]
            before = rule.table_id
            write_table(RoutingTable("", MoEShape(1, 6, 1), "count", None, np.array([0]), np.eye(6)[:3]), path)
            status, told = await reload()
            assert status == 400 and "the routing table is of" in told["error"]["message"] and rule.table_id == before
            table_file(tmp_path, ("a", "b"), CENTROIDS[:2])
            assert "has 2 centroids and the group 3 workers" in (await reload())[1]["error"]["message"]
            await stream(client, base, prompt="x" * 100)
            assert count_of(engines) == [1, 2, 0]

    run(check())


def test_without_such_a_rule_the_door_says_so(tmp_path):
    async def check():
        async with fleet([Engine()], admin_token=TOKEN) as (router, client, base):
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with client.post(base + "/locality/reload", headers=headers) as answer:
                assert answer.status == 404 and "eldr:table=FILE" in (await answer.json())["error"]["message"]
            assert router.signatures is None and b"lbopt_locality" not in router.metrics.text()

    run(check())


# -- end to end on the virtual clock


@pytest.mark.more
def test_a_mock_fleet_is_served_as_naive_decisions_say(tmp_path):
    """120 clients of three requests: the first tells its experts, the second begins like it, the third is a new one.

    Every placement is the naive one on the requests that were in flight at that moment.
    """
    workers, rng = 4, np.random.default_rng(2)
    activity = draw_workload(task_workload(shape=MoEShape(2, 16, 2), requests=160), seed=3)[1]
    fit = fit_routing(activity, workers, transform="count", mask=False, starts=1)
    write_table(fit.table, tmp_path / "t.npz")
    told = draw_workload(task_workload(shape=MoEShape(2, 16, 2), requests=120), seed=3)[1].counts
    placed, wrong, kinds = [], [], []

    async def main():
        setting = MockSetting(
            workers=workers, slots=64, step_time="affine:fixed=0.01,per_token=0", served_model_name="m"
        )
        mock = MockFleet(setting)
        await mock.start()
        plan = fleet_of({"group": [{"name": "g", "model": "m", "slots": 64, "workers": mock.urls}]})
        options = RouterOptions(port=0, policy=f"eldr:table={tmp_path / 't.npz'}", poll_seconds=600.0, prefix_bytes=64)
        router = Router(plan, options)
        server = Server(router)
        await server.start()
        while not router.is_ready:
            await asyncio.sleep(0)
        await quiet()
        rule, look = router.dispatcher.rules["g"], router.dispatcher._look

        def check(sight, decision, name, stages):
            tracker = sight.waiting[0]
            load = [worker.bound for worker in sight.workers]
            tokens = [worker.load + worker.queued_tokens for worker in sight.workers]
            best = min(range(workers), key=lambda i: (load[i], tokens[i], i))
            if tracker.signature is not None:
                near = naive.similarities(tracker.signature.counts.ravel().tolist(), fit.table.centroids.tolist())
                best = naive.route(near, load, 0.1)
            kinds.append(None if tracker.signature is None else tracker.signature.is_own)
            placed.append(int(decision[0]))
            if best != decision[0]:
                wrong.append((best, int(decision[0])))
            look(sight, decision, name, stages)

        router.dispatcher._look = check
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(keepalive_timeout=None)) as client:

            async def talk(i):
                await asyncio.sleep(float(rng.random()) * 3)
                text = f"conversation {i} " * 12
                for turn in range(3):
                    headers = {HEADER: counts_as_text(told[i])} if turn == 0 else {}
                    prompt = text + " and then? " * turn if turn < 2 else f"alone {i}"
                    url = f"http://127.0.0.1:{server.port}/v1/completions"
                    body = ask(tokens=20, prompt=prompt, model="m")
                    async with client.post(url, json=body, headers=headers) as answer:
                        assert answer.status == 200
                        await answer.read()

            await asyncio.gather(*(talk(i) for i in range(120)))
        assert rule.locality.watch.reading().requests == 120  # those that told their own
        assert router.signatures.sources == {"header": 120, "prefix": 120, "none": 120, "key": 0, "unreadable": 0}
        assert not router.fleet.live and router.dispatcher.failed_decisions == 0
        await server.stop(0.0)
        await mock.stop()

    run_virtual(main())
    assert len(placed) == 360 and wrong == []
    assert kinds.count(True) == kinds.count(False) == kinds.count(None) == 120
    assert len(set(placed)) == workers
