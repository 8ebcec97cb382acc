"""The virtual clock: time, order, bytes in flight, threads, standstill."""

from __future__ import annotations

import asyncio
import time

import pytest

from lbopt.serving.process import ENGINE_ORDER, ROUTER_ORDER, quiet
from tools.virtual_clock import StandstillError, run_virtual


def test_a_day_is_not_waited_for():
    """A clock that waited would never be done."""

    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        for _ in range(24):
            await asyncio.sleep(3600)
            seen.append(loop.time())
        return seen

    assert run_virtual(main()) == [3600.0 * hour for hour in range(1, 25)]


def test_time_is_that_of_the_timer_exactly():
    """No rounding: 0.1 + 0.2 is not 0.3, and a timer for either fires at its own time."""

    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        for when in (0.1 + 0.2, 0.3, 1e-12, 7.0):
            loop.call_at(when, lambda: seen.append(loop.time()))
        await asyncio.sleep(8)
        return seen

    assert run_virtual(main()) == [1e-12, 0.3, 0.1 + 0.2, 7.0]


def test_timers_of_equal_time_fire_in_the_order_in_which_they_were_set():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        for number in range(50):
            loop.call_at(1.0, seen.append, number)
        loop.call_at(1.0, seen.append, "cancelled").cancel()
        await asyncio.sleep(2)
        return seen

    assert run_virtual(main()) == list(range(50))


def test_a_timer_can_be_cancelled_by_another_of_the_same_time():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        later = []
        loop.call_at(1.0, lambda: later[0].cancel())
        later.append(loop.call_at(1.0, seen.append, "late"))
        await asyncio.sleep(2)
        return seen

    assert run_virtual(main()) == []


def test_time_does_not_advance_while_bytes_are_on_their_way():
    """A chain of ten hops over connections takes no time, although a timer is due shortly after."""

    async def main():
        loop = asyncio.get_running_loop()
        seen = []

        async def relay(reader, writer, onward):
            data = await reader.readline()
            if onward is not None:
                _, out = await asyncio.open_connection("127.0.0.1", onward)
                out.write(data)
                out.write_eof()
            else:
                seen.append((loop.time(), data))
            writer.close()

        onward = None
        for _ in range(10):
            server = await asyncio.start_server(lambda r, w, onward=onward: relay(r, w, onward), "127.0.0.1", 0)
            onward = server.sockets[0].getsockname()[1]
        _, first = await asyncio.open_connection("127.0.0.1", onward)
        loop.call_later(1e-9, lambda: seen.append((loop.time(), b"timer")))
        first.write(b"hello\n")
        await asyncio.sleep(1)
        return seen

    assert run_virtual(main()) == [(0.0, b"hello\n"), (1e-9, b"timer")]


def test_a_router_is_woken_before_engines_and_both_before_time_advances():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []

        async def engine():
            await quiet(ENGINE_ORDER)
            seen.append(("engine", loop.time()))

        async def router():
            await quiet(ROUTER_ORDER)
            seen.append(("router", loop.time()))
            await asyncio.sleep(0)
            seen.append(("router acted", loop.time()))

        tasks = [asyncio.create_task(engine()), asyncio.create_task(engine()), asyncio.create_task(router())]
        loop.call_later(1e-9, lambda: seen.append(("timer", loop.time())))
        await asyncio.gather(*tasks)
        await asyncio.sleep(1)
        return seen

    order = ["router", "router acted", "engine", "engine", "timer"]
    assert [name for name, _ in run_virtual(main())] == order


def test_a_thread_takes_no_virtual_time():
    async def main():
        loop = asyncio.get_running_loop()
        fast = asyncio.create_task(asyncio.sleep(0.001))
        await loop.run_in_executor(None, time.sleep, 0.05)
        return loop.time(), fast.done()

    assert run_virtual(main()) == (0.0, False)


def test_a_standstill_is_an_error_and_not_a_hang():
    async def main():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StandstillError, match="after 0 s of virtual time"):
        run_virtual(main())


def test_large_writes_are_held_back_and_arrive_whole():
    """A writer is asked to pause while the reader sleeps; nothing is lost, in 1 MiB."""
    sent = bytes(range(256)) * 4096

    async def main():
        loop = asyncio.get_running_loop()
        got = asyncio.get_running_loop().create_future()

        async def read_late(reader, writer):
            await asyncio.sleep(5)
            got.set_result(await reader.read())
            writer.close()

        server = await asyncio.start_server(read_late, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for begin in range(0, len(sent), 8192):
            writer.write(sent[begin : begin + 8192])
            await writer.drain()
        drained = loop.time()
        writer.write_eof()
        return drained, await got

    drained, received = run_virtual(main())
    assert drained == 5.0
    assert received == sent


def test_a_reset_reaches_the_other_end_and_what_was_not_read_is_lost():
    async def main():
        async def reset(reader, writer):
            writer.write(b"lost")
            writer.transport.abort()

        server = await asyncio.start_server(reset, "127.0.0.1", 0)
        reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
        return await reader.read()

    with pytest.raises(ConnectionResetError):
        run_virtual(main())


def test_connections_are_refused_where_nobody_listens_any_more():
    async def main():
        server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        server.close()
        await asyncio.open_connection(*address)

    with pytest.raises(ConnectionRefusedError):
        run_virtual(main())


def test_there_is_no_way_out_of_the_virtual_network():
    async def main():
        await asyncio.open_connection("example.org", 80)

    with pytest.raises(OSError):
        run_virtual(main())
