"""Time of one chunk within the router: `python -m tests.benchmarks.serving_chunk [--chunks 200000]`.

A chunk of HTTP goes from the connection to the engine through the counter of events into the state and to the client's
connection; sockets are stubs, so nothing of the system is in it. The best of several rounds is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from types import SimpleNamespace

from lbopt.serving.http_wire import Wire
from lbopt.serving.router.ask import Ask
from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.fleet_file import WorkerAddress, fleet_of
from lbopt.serving.router.forward import Attempt, Flow
from lbopt.serving.router.job import Job
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.service import Router
from tests.benchmarks.open_loop import TEXT as CHUNK

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAME = b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK)


class Transport:
    """A connection that swallows what is written."""

    def __init__(self):
        self.count = 0

    def write(self, data):
        self.count += len(data)

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False


async def one_round(chunks):
    """Return the seconds of a chunk."""
    plan = fleet_of({"group": [{"model": "m", "slots": 4, "workers": ["http://127.0.0.1:1"]}]})
    router = Router(plan, RouterOptions(policy="jsq-load"))
    loop = asyncio.get_running_loop()
    router._clock = loop.time
    (worker,) = router.fleet.groups["group-0"].workers
    router.fleet.worker_up("group-0", worker.name, 4)
    tracker = router.fleet.arrived("m", 10, 0.0)
    router.fleet.prefilled(tracker, 0.0)
    router.fleet.dispatched(tracker, worker, 0.0)
    job = Job(tracker, Ask("m", True, 40, False, False, None), b"", "/v1/completions", {}, chat=False)
    client, wire = Transport(), Wire([])
    wire.connection_made(Transport())
    asking = loop.create_task(wire.ask(b""))
    await asyncio.sleep(0)
    wire.data_received(HEAD)
    await asking
    endpoint = Endpoint(WorkerAddress(worker.name, "http://127.0.0.1:1"), worker, router.options)
    attempt = Attempt(router, job, endpoint, SimpleNamespace(transport=client))
    pouring = loop.create_task(attempt._pour(wire, Flow(router, job, endpoint, tracker.attempt)))
    await asyncio.sleep(0)
    begin = time.perf_counter()
    for _ in range(chunks):
        wire.data_received(FRAME)
    took = time.perf_counter() - begin
    pouring.cancel()
    assert tracker.generated == chunks
    assert client.count == chunks * len(FRAME)
    return took / chunks


def main():
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    best = min(asyncio.run(one_round(arguments.chunks)) for _ in range(arguments.rounds))
    print(f"{1e6 * best:.2f} us a chunk, {64e3 * best:.3f} ms for 64")


if __name__ == "__main__":
    main()
