"""The mock fleet: barrier groups, prefill instances, their endpoints, and an admin that lets things go wrong.

What every step of every group held and how long it took, as BalanceRoute's authors record it in the engine's
loop.
"""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from lbopt.exceptions import InputError, LbOptError
from lbopt.files import read_text
from lbopt.serving.mock.driver import Driver
from lbopt.serving.mock.endpoint import Endpoint
from lbopt.serving.mock.engines import DecodeEndpoint, PrefillEndpoint, Rank
from lbopt.serving.mock.group import BarrierGroup, Prefiller, Step
from lbopt.serving.mock.protocol import make_lengths
from lbopt.serving.mock.setting import ON_STREAMS, Fault, MockSetting, make_faults

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Address(NamedTuple):
    """Where something of the fleet is: its role, which workers or instances, and the URL."""

    role: str
    numbers: tuple[int, ...]
    url: str


class MockFleet:
    """The fleet. Made inside of a running event loop, virtual or not.

    Parameters
    ----------
    setting
        What it is.

    Attributes
    ----------
    groups, prefill_endpoints, decode_endpoints
        Its parts, in the order of their numbers.
    begun
        When it was started, s of the loop's clock.
    """

    def __init__(self, setting: MockSetting) -> None:
        self.setting = setting
        self.groups = [BarrierGroup(setting.group_setting()) for _ in range(setting.groups)]
        settle, size = setting.seconds("settle"), setting.workers_per_group
        self.drivers = [Driver(group, settle) for group in self.groups]
        self.prefill_endpoints = [PrefillEndpoint(setting, self._prefiller(i)) for i in range(setting.prefillers)]
        ranks = [
            Rank(group, driver, place, g * size + place)
            for g, (group, driver) in enumerate(zip(self.groups, self.drivers, strict=True))
            for place in range(size)
        ]
        together = size if setting.one_endpoint else 1
        lengths = make_lengths(setting.lengths)
        self.decode_endpoints = [
            DecodeEndpoint(setting, ranks[first : first + together], lengths, self.prefill_endpoints)
            for first in range(0, len(ranks), together)
        ]
        self.begun = 0.0
        self.faults: list[str] = []
        self._admin: web.AppRunner | None = None
        self._admin_port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def _prefiller(self, number: int) -> Prefiller:
        setting = self.setting
        return Prefiller(
            f"p{number}",
            setting.pass_time(),
            setting.pass_tokens,
            max(setting.prefiller_kv // setting.block, 1),
            setting.block,
            setting.seconds("hold"),
        )

    @property
    def _endpoints(self) -> list[Endpoint]:
        return [*self.decode_endpoints, *self.prefill_endpoints]

    @property
    def addresses(self) -> list[Address]:
        """Where everything is, the admin last."""
        found = [Address("decode", tuple(rank.number for rank in one.ranks), one.url) for one in self.decode_endpoints]
        found += [Address("prefill", (i,), one.url) for i, one in enumerate(self.prefill_endpoints)]
        return [*found, Address("admin", (), f"http://{self.setting.host}:{self._admin_port}")]

    @property
    def urls(self) -> list[str]:
        """The URLs of the decode endpoints."""
        return [one.url for one in self.decode_endpoints]

    async def start(self) -> None:
        """Begin to listen and to step.

        Raises
        ------
        InputError
            If a port is taken.
        """
        faults = list(_faults_of(self.setting.fault))
        self._refuse(faults)
        port = self.setting.port
        self.begun = asyncio.get_running_loop().time()
        try:
            for offset, endpoint in enumerate(self._endpoints):
                await endpoint.start(port + offset if port else 0)
            await self._start_admin(port + len(self._endpoints) if port else 0)
        except OSError as error:
            await self.stop()
            raise InputError(f"cannot listen at {self.setting.host}: {error.strerror or error}") from None
        for driver in [*self.drivers, *(one.driver for one in self.prefill_endpoints)]:
            driver.start()
        for fault in faults:
            self.plan(fault)

    async def stop(self) -> None:
        """End everything; connections are closed."""
        for task in list(self._tasks):
            task.cancel()
        for driver in [*self.drivers, *(one.driver for one in self.prefill_endpoints)]:
            await driver.stop()
        for endpoint in self._endpoints:
            await endpoint.stop()
        if self._admin is not None:
            await self._admin.cleanup()

    def plan(self, fault: Fault) -> None:
        """Let a fault begin when it is due.

        Raises
        ------
        InputError
            If it meets a worker or an instance that is not there.
        """
        self._refuse([fault])
        task = asyncio.get_running_loop().create_task(self._carry_out(fault))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse(self, faults: list[Fault]) -> None:
        for fault in faults:
            self._endpoint_of(fault)
            if fault.kind == "slow" and fault.worker is None:
                raise InputError(f"fault '{fault}': only a decode worker can be slow; give worker=NUMBER")

    async def _carry_out(self, fault: Fault) -> None:
        await asyncio.sleep(fault.seconds_before)
        endpoint = self._endpoint_of(fault)
        self.faults.append(f"{asyncio.get_running_loop().time() - self.begun:.3f} s: {fault}")
        if fault.kind in ON_STREAMS:
            endpoint.faults_on_streams.extend([fault] * fault.count)
            return
        await self._switch(fault, endpoint, True)
        if fault.seconds is not None:
            await asyncio.sleep(fault.seconds)
            await self._switch(fault, endpoint, False)

    async def _switch(self, fault: Fault, endpoint: Endpoint, on: bool) -> None:
        if fault.kind == "crash":
            await (endpoint.crash() if on else endpoint.recover())
        elif fault.kind == "freeze":
            endpoint.freeze() if on else endpoint.thaw()
        elif fault.kind == "dead":
            endpoint.die(on)
        elif fault.kind == "busy":
            endpoint.busy = on
        elif fault.kind == "lost-metrics":
            endpoint.lost_metrics = fault.mode if on else ""
        else:
            assert fault.worker is not None and fault.kind == "slow"
            group, place = divmod(fault.worker, self.setting.workers_per_group)
            self.groups[group].workers[place].slow = fault.factor if on else 1.0

    def _endpoint_of(self, fault: Fault) -> Endpoint:
        if fault.prefiller is not None:
            if not 0 <= fault.prefiller < len(self.prefill_endpoints):
                raise InputError(f"fault '{fault}': there are {len(self.prefill_endpoints)} prefill instances")
            return self.prefill_endpoints[fault.prefiller]
        worker = fault.worker
        if worker is None or not 0 <= worker < self.setting.workers:
            raise InputError(f"fault '{fault}': the workers are 0 to {self.setting.workers - 1}")
        return next(one for one in self.decode_endpoints if any(rank.number == worker for rank in one.ranks))

    def state(self) -> dict[str, Any]:
        """Return what every part holds and has done, as plain data: the truth, which no router sees."""
        groups = []
        for group in self.groups:
            workers = [
                {
                    "load": worker.load,
                    "running": len(worker.running),
                    "waiting": len(worker.queue),
                    "blocks": worker.blocks,
                    "preemptions": worker.preemptions,
                    "made_tokens": worker.made_tokens,
                    "slow": worker.slow,
                }
                for worker in group.workers
            ]
            steps = group.steps
            groups.append(
                {
                    "steps": steps,
                    "seconds": group.seconds,
                    "mean_imbalance_tokens": group.imbalance / steps if steps else 0.0,
                    "idle_share": group.imbalance / group.barrier_tokens if group.barrier_tokens else 0.0,
                    "workers": workers,
                }
            )
        prefillers = [
            {
                "running": len(one.worker.running),
                "waiting": len(one.worker.queue),
                "held": len(one.held),
                "used_blocks": one.used,
                "expired": one.expired,
                "passes": one.steps,
            }
            for one in (endpoint.prefiller for endpoint in self.prefill_endpoints)
        ]
        lost = sum(one.lost_transfers for one in self.decode_endpoints)
        return {"groups": groups, "prefillers": prefillers, "lost_transfers": lost, "faults": list(self.faults)}

    async def _start_admin(self, port: int) -> None:
        app = web.Application()
        app.add_routes(
            [
                web.get("/mock/state", self._show_state),
                web.get("/mock/addresses", self._show_addresses),
                web.post("/mock/faults", self._take_faults),
            ]
        )
        self._admin = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._admin.setup()
        await web.TCPSite(self._admin, self.setting.host, port).start()
        self._admin_port = self._admin.addresses[0][1]

    async def _show_state(self, _request: web.Request) -> web.Response:
        return web.json_response(self.state())

    async def _show_addresses(self, _request: web.Request) -> web.Response:
        return web.json_response([one._asdict() for one in self.addresses])

    async def _take_faults(self, request: web.Request) -> web.Response:
        try:
            faults = make_faults((await request.text()).splitlines())
            self._refuse(faults)
        except (LbOptError, UnicodeDecodeError) as error:
            return web.json_response({"error": str(error)}, status=400)
        for fault in faults:
            self.plan(fault)
        return web.json_response({"planned": len(faults)})


def _faults_of(texts: tuple[str, ...]) -> Iterator[Fault]:
    """Read the faults of the setting; @FILE holds one a line."""
    for text in texts:
        yield from make_faults(read_text(Path(text[1:])).splitlines() if text.startswith("@") else [text])


@asynccontextmanager
async def mock_fleet(setting: MockSetting | None = None, **given: Any) -> AsyncIterator[MockFleet]:
    """Run a fleet while the block runs.

    Parameters
    ----------
    setting
        What it is; None makes one of `given`.
    given
        Fields of a `MockSetting`.

    Examples
    --------
    >>> from lbopt.serving.mock.fleet import mock_fleet
    >>> from tools.virtual_clock import run_virtual  # in a checkout; with `asyncio.run` on a wall clock
    >>> async def main():
    ...     async with mock_fleet(workers=2, slots=4) as fleet:
    ...         return fleet.urls
    >>> run_virtual(main())
    ['http://127.0.0.1:20000', 'http://127.0.0.1:20001']
    """
    fleet = MockFleet(setting or MockSetting(**given))
    await fleet.start()
    try:
        yield fleet
    finally:
        await fleet.stop()


class StepLog:
    """The steps of a fleet, in the order in which they began.

    Parameters
    ----------
    fleet
        Whose steps; it must not have started.
    """

    def __init__(self, fleet: MockFleet) -> None:
        self._fleet = fleet
        self._size = fleet.setting.workers_per_group
        self.rows: list[tuple[int, float, Step]] = []
        for number, driver in enumerate(fleet.drivers):
            driver.on_step = lambda begin, step, number=number: self.rows.append((number, begin, step))

    def write(self, path: Path) -> None:
        """Write one line a step: group, begin in s from the start of the fleet, seconds,
        then tokens and requests of each worker of the group."""
        workers = range(self._size)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            loads, running = [f"load_{w}" for w in workers], [f"running_{w}" for w in workers]
            writer.writerow(["group", "begin", "seconds", *loads, *running])
            for number, begin, step in self.rows:
                writer.writerow(
                    [number, repr(begin - self._fleet.begun), repr(step.seconds), *step.loads, *step.active]
                )
