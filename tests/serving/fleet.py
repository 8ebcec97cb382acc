"""What the tests of the mock fleet share: a fleet on a virtual clock, and answers read event by event."""

from __future__ import annotations

import asyncio
import json

import aiohttp

from lbopt.serving.mock.fleet import mock_fleet
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
