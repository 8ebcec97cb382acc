"""Scrapes of engines' /metrics, one after another, for as long as is asked or until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from lbopt.exceptions import InputError
from lbopt.serving.http_client import Wires, checked_url, request_head
from lbopt.serving.process import ended_by_signals
from lbopt.serving.scrape import LARGEST_SCRAPE

#: Where, when (s of the loop's clock), and what it said.
Scrape = tuple[str, float, bytes]
#: Within which an engine has to answer.
_SECONDS = 10.0


def watch(
    urls: Sequence[str], seconds: float, every: float, each: Callable[[int], None] | None = None
) -> tuple[list[Scrape], bool]:
    """Return what the addresses said, and whether Ctrl-C ended it; an answer that fails in between is left out.

    Parameters
    ----------
    urls
        Addresses of metrics; without a path it is /metrics.
    seconds, every
        For how long, and the time between two scrapes.
    each
        Is told how many rounds of scrapes there are.

    Raises
    ------
    InputError
        Where an address answers not once.
    """
    return asyncio.run(_watch([_address(url) for url in urls], seconds, every, each))


def _address(url: str) -> str:
    found = checked_url(url, "the engine to be watched")
    return found if found.partition("://")[2].partition("/")[2] else found + "/metrics"


async def _watch(
    urls: Sequence[str], seconds: float, every: float, each: Callable[[int], None] | None
) -> tuple[list[Scrape], bool]:
    stop, found, faults = asyncio.Event(), list[Scrape](), dict[str, str]()
    wires = Wires(kept_seconds=60.0, connect_seconds=_SECONDS)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    with ended_by_signals(stop.set):
        for count in range(int(seconds / every) + 1):
            wait = begin + count * every - loop.time()
            if wait > 0:
                try:
                    async with asyncio.timeout(wait):
                        await stop.wait()
                except TimeoutError:
                    pass
            if stop.is_set():
                break
            now = loop.time()
            for url, answer in zip(urls, await asyncio.gather(*(_scrape(wires, url) for url in urls)), strict=True):
                if isinstance(answer, bytes):
                    found.append((url, now, answer))
                else:
                    faults[url] = answer
            if count == 0 and faults:
                break
            if each is not None:
                each(count + 1)
    wires.close()
    for url, fault in faults.items():
        if not any(where == url for where, _, _ in found):
            raise InputError(f"{url} cannot be scraped: {fault}")
    return found, stop.is_set()


async def _scrape(wires: Wires, url: str) -> bytes | str:
    """Return the answer of an address, or what is wrong with it."""
    try:
        head, body = await wires.fetch(url, request_head(url, "", {}, 0, "GET"), seconds=_SECONDS, most=LARGEST_SCRAPE)
    except TimeoutError:
        return f"no answer within {_SECONDS:g} s"
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
    if body.lstrip()[:1] == b"<":
        return "it answers with a page of HTML; metrics of engines are at addresses such as http://host:8000/metrics"
    return body if head.status == 200 else f"status {head.status}"
