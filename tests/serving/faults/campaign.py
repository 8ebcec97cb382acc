"""One row through one router: engines, router and clients are started, the fault happens, and everybody is counted."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.serving.faults.client import ask, get
from tests.serving.faults.engine import FAULTS
from tests.serving.faults.routers import Column, engine, router
from tests.serving.faults.rows import Row
from tests.serving.faults.verdict import BAD, CUT, HUNG, NO_ROUTER, WHOLE

#: So many clients that wait in vain say enough of a router: the others are not sent.
ENOUGH_HUNG = 12
#: Seconds after the last client within which nothing may be held any more.
_SETTLES = 5.0


@dataclass
class Account:
    """What the clients of one row got.

    Attributes
    ----------
    sent
        Clients that have sent a request.
    kinds
        How many got what, out of `verdict.KINDS`.
    held
        Requests that the router counts as live some seconds after the last client; None where it does not say.
    running
        Answers that engines still make then.
    slowest
        Seconds until the last of the clients knew what it got.
    """

    sent: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    held: int | None = None
    running: int = 0
    slowest: float = 0.0

    @property
    def whole(self) -> int:
        """Clients that got all they asked for."""
        return self.kinds[WHOLE]

    def complaints(self, row: Row) -> list[str]:
        """Say what of this account must not be."""
        found = [f"{self.kinds[kind]} {kind}" for kind in BAD if self.kinds[kind]]
        if self.sent != row.requests or self.kinds.total() != self.sent:
            found.append(f"{row.requests} clients, {self.sent} sent, {self.kinds.total()} in the account")
        if row.whole and self.whole < self.sent:
            found.append(f"{self.whole} of {self.sent} whole")
        if self.held:
            found.append(f"{self.held} requests still held")
        return found


async def measure(row: Row, column: Column) -> Account:
    """Run one row through one router."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        engines = [await stack.enter_async_context(engine(fault, row.spacing)) for fault in row.faults]
        urls = [url for _, url in engines]
        running, url = await stack.enter_async_context(router(column, urls, folder))
        victim = running if row.to_router else engines[0][0]
        changing = asyncio.ensure_future(change([one for one, _ in engines])) if row.changes else None
        account = await clients(row, url, victim.send_signal)
        if changing is not None:
            changing.cancel()
        await settle(account, url, urls, ours=column.ours)
        return account


async def change(engines: list[asyncio.subprocess.Process]) -> None:
    """Give one engine after another another fault, or none, for ever; the same ones before every router."""
    rng, faults = random.Random(1), [fault for fault in FAULTS if fault != "usage"]
    while True:
        await asyncio.sleep(rng.uniform(0.05, 0.5))
        pipe = rng.choice(engines).stdin
        assert pipe is not None
        pipe.write(f"{rng.choice([*faults, *['none'] * len(faults)])}\n".encode())


async def clients(row: Row, url: str, send_signal: Callable[[int], None]) -> Account:
    """Send the requests of a row, several at once, and signals once a third of them is on its way.

    Parameters
    ----------
    row, url
        What is sent, and where.
    send_signal
        Called with the number of each signal.
    """
    account, is_signalled, loop = Account(), asyncio.Event(), asyncio.get_running_loop()
    numbers = iter(range(row.requests))

    async def one_after_another() -> None:
        for number in numbers:
            if account.kinds[HUNG] >= ENOUGH_HUNG:
                return
            account.sent += 1
            if number == row.requests // 3:
                is_signalled.set()
            began = loop.time()
            found = await ask(url, number, row.tokens, row.patience, goes=bool(row.goes) and number % row.goes == 0)
            account.kinds[_seen_by(row, found)] += 1
            account.slowest = max(account.slowest, loop.time() - began)

    async def signals() -> None:
        await is_signalled.wait()
        begin = loop.time()
        for at, number in row.signals:
            await asyncio.sleep(begin + at - loop.time())
            send_signal(number)

    signalling = asyncio.ensure_future(signals())
    try:
        await asyncio.gather(*(one_after_another() for _ in range(row.at_once)))
    finally:
        signalling.cancel()
    return account


def _seen_by(row: Row, found: str) -> str:
    """Return what a client saw in the light of what happened: a router that is alive has no excuse to be away."""
    if not row.to_router:
        return CUT if found == NO_ROUTER else found
    is_killed = any(number == 9 for _, number in row.signals)
    return NO_ROUTER if found == CUT and is_killed else found


async def settle(account: Account, url: str, engines: list[str], *, ours: bool) -> None:
    """Note what router and engines still hold, some seconds after the last client at most."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _SETTLES
    while True:
        account.running = sum(int(body or 0) for _, body in [await get(e, "/running") for e in engines])
        if ours:
            status, text = await get(url, "/metrics")
            live = re.search(rb"^lbopt_live_requests (\d+)", text, re.MULTILINE)
            account.held = int(live[1]) if status == 200 and live else None
        if loop.time() > until or not (account.running or account.held):
            return
        await asyncio.sleep(0.1)
