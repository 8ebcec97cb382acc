"""`lbopt show fleet`: a real router's numbers, rates from two readings, and refusals in one sentence."""

from __future__ import annotations

import asyncio

import pytest
from serving.engines import Engine, becomes, fleet, run, stream
from typer.testing import CliRunner

from lbopt.cli import app
from lbopt.serving.scrape import read_view


def test_the_view_of_a_running_router():
    """Workers, tokens, pool, idle share and rates are those of the state."""

    async def check():
        engines = [Engine(tokens=400, delay=0.01) for _ in range(2)]
        async with fleet(engines, slots=1, policy="jsq-load") as (router, client, base):
            tasks = [asyncio.create_task(stream(client, base, prompt=[1] * size)) for size in (900, 100, 50)]
            await becomes(lambda: sum(t.produced for t in router.fleet.live.values()) > 3)

            async def read():
                async with client.get(base + "/metrics") as answer:
                    return read_view(await answer.text(), router.now())

            first = await read()
            await asyncio.sleep(0.3)
            second = await read()
            assert {w.name for w in second.workers} == {engine.url[7:] for engine in engines}
            assert sorted(w.running for w in second.workers) == [1, 1]
            assert sum(w.tokens for w in second.workers) > 1000
            assert second.pool == {"m": 1.0}
            assert 0.3 < second.idle_share(first) < 0.5
            assert second.rate("output_tokens", first) > 20
            assert second.rate("output_tokens", None) is None
            shown = await asyncio.to_thread(
                CliRunner().invoke, app, ["show", "fleet", base, "--once", "--every", "0.1"]
            )
            assert shown.exit_code == 0, shown.output
            assert engines[0].url[7:] in shown.output
            assert "pool 1 waiting" in shown.output
            for task in tasks:
                task.cancel()
            engine = engines[0].url
            refused = await asyncio.to_thread(CliRunner().invoke, app, ["show", "fleet", engine])
            assert "no router of lbopt" in str(refused.exception)

    run(check())


@pytest.mark.parametrize("words", [["http://127.0.0.1:1"], ["127.0.0.1"], ["http://x y"], ["--every", "0"]])
def test_what_is_no_router_is_refused(words):
    """One sentence, no traceback."""
    done = CliRunner().invoke(app, ["show", "fleet", *words])
    assert type(done.exception).__name__ == "InputError"


def test_damaged_metrics_are_left_out():
    """A counter that fell gives no rate."""
    text = (
        'lbopt_worker_up{group="g",worker="a"} 1\nlbopt_rounds_total 5\nlbopt_bad{x="} 1\nlbopt_imbalance_tokens NaN\n'
    )
    now = read_view(text, 2.0)
    assert (len(now.workers), now.imbalance, now.counters) == (1, {}, {"rounds": 5.0})
    before = read_view("lbopt_rounds_total 9\n", 1.0)
    assert now.rate("rounds", before) is None
    assert now.idle_share(before) is None
