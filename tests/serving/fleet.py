"""What the tests of the mock fleet share: a fleet on a virtual clock, and answers read event by event."""

from __future__ import annotations

import asyncio
import json

import aiohttp

from lbopt.serving.mock.fleet import mock_fleet
from lbopt.serving.router.fleet_file import fleet_of
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.run import Server
from lbopt.serving.router.service import Router
from lbopt.serving.scrape import stream_events
from tools.virtual_clock import run_virtual

TEN_MS = "affine:fixed=0.01,per_token=0"


def on_fleet(use, **setting):
    """Run `use(fleet, session)` beside a fleet on a virtual clock."""

    async def main():
        async with mock_fleet(**{"step_time": TEN_MS, "workers": 2, "slots": 4} | setting) as fleet:
            connector = aiohttp.TCPConnector(keepalive_timeout=None)
            async with aiohttp.ClientSession(connector=connector) as session:
                return await use(fleet, session)

    return run_virtual(main())


def ask(tokens=5, prompt="one two three four five six seven", **more):
    """The body of a completion that has exactly so many tokens."""
    return {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True} | more


async def post(session, url, body, path="/v1/completions", **headers):
    """Status and body of an answer that is no stream."""
    async with session.post(url + path, json=body, headers=headers) as response:
        return response.status, json.loads(await response.read())


async def stream(session, url, body, path="/v1/completions", **headers):
    """Events of a stream as (time, event), with what ended it: "done", or the name of an error."""
    loop, held, found = asyncio.get_running_loop(), b"", []
    try:
        async with session.post(url + path, json=body | {"stream": True}, headers=headers) as response:
            if response.status != 200:
                return [], f"status-{response.status}"
            async for piece in response.content.iter_any():
                held, read = held + piece, 0
                for end, data in stream_events(held):
                    read = end
                    if data == b"[DONE]":
                        return found, "done"
                    found.append((loop.time(), json.loads(data)))
                held = held[read:]
    except aiohttp.ClientError as error:
        return found, type(error).__name__
    return found, "end"


def text_of(events):
    """The text of a completion's events."""
    return "".join(choice["text"] for _, event in events for choice in event["choices"])


async def metrics_of(session, url):
    """Samples of `/metrics` without labels of the model: {(name, engine): value}."""
    found = {}
    async with session.get(url + "/metrics") as response:
        for line in (await response.text()).splitlines():
            if line and not line.startswith("#") and 'engine="' in line:
                engine = line.partition('engine="')[2].partition('"')[0]
                found[line.partition("{")[0], int(engine)] = float(line.rpartition(" ")[2])
    return found


def on_router(use, *, groups=False, options=None, **setting):
    """Run `use(router, fleet, session, base)` with a router before a fleet on a virtual clock.

    With `groups` each worker is a group of its own.
    """

    async def main():
        given = {"step_time": TEN_MS, "workers": 2, "slots": 4, "served_model_name": "m"} | setting
        given |= {"groups": given["workers"]} if groups else {}
        async with mock_fleet(**given) as fleet:
            of = [[url] for url in fleet.urls] if groups else [fleet.urls]
            tables = [{"name": f"g{n}", "model": "m", "slots": given["slots"], "workers": w} for n, w in enumerate(of)]
            router = Router(fleet_of({"group": tables}), RouterOptions(port=0, **options or {}))
            server = Server(router)
            await server.start()
            while not router.is_ready:
                await asyncio.sleep(0)
            connector = aiohttp.TCPConnector(keepalive_timeout=None)
            async with aiohttp.ClientSession(connector=connector) as session:
                try:
                    return await use(router, fleet, session, f"http://127.0.0.1:{server.port}")
                finally:
                    await server.stop(0.0)

    return run_virtual(main())
