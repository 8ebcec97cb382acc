"""Cheap engines and a cheap open-loop load for measuring routers: HTTP/1.1 on bare sockets, so that little is theirs.

An engine answers every completion with a stream of `max_tokens` chunks, evenly spaced. The load sends each request at
its own time, whatever became of those before it, and times the first byte of the answer's body.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from urllib.parse import urlsplit

TEXT = (
    b'data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,'
    b'"text":" token","logprobs":null,"finish_reason":null}]}\n\n'
)
_CHUNK = b"%x\r\n%b\r\n" % (len(TEXT), TEXT)
_DONE = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class _Engine(asyncio.Protocol):
    """One connection to an engine."""

    def __init__(self, spacing):
        self.spacing = spacing
        self.data = b""
        self.left, self.due = 0, 0.0

    def connection_made(self, transport):
        self.transport = transport
        self.loop = asyncio.get_running_loop()

    def data_received(self, data):
        self.data += data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        head, body = self.data[:end].lower(), self.data[end + 4 :]
        if not head.startswith(b"post"):
            self.data = b""
            self.transport.write(_FINE if head.startswith(b"get /health") else _UNKNOWN)
            return
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self.data = b""
            digits = body.partition(b'"max_tokens":')[2].lstrip()
            self.left = int(digits[: next(i for i, c in enumerate(digits) if not 48 <= c <= 57)])
            self.due = self.loop.time()
            self.transport.write(_HEAD)
            self.send()

    def send(self):
        if self.transport.is_closing():
            return
        self.left -= 1
        self.transport.write(_CHUNK if self.left else _CHUNK + _DONE)
        if self.left:
            self.due += self.spacing
            self.loop.call_at(self.due, self.send)


async def engines(ports, spacing):
    """Serve for ever."""
    for port in ports:
        await asyncio.get_running_loop().create_server(lambda: _Engine(spacing), "127.0.0.1", port, backlog=4096)
    await asyncio.Event().wait()


class _Ask(asyncio.Protocol):
    """One connection of the load; it carries one request at a time."""

    def __init__(self, idle):
        self.idle = idle
        self.ended = None

    def connection_made(self, transport):
        self.transport = transport

    def send(self, request, chunks):
        self.first, self.left, self.tail = 0.0, chunks + 1, b""
        self.ended = asyncio.get_running_loop().create_future()
        self.transport.write(request)

    def data_received(self, data):
        if self.ended is None:
            return
        if not self.first and b"data:" in data:
            self.first = time.perf_counter()
        data = self.tail + data
        self.left -= data.count(b"data: ")
        self.tail = data[-5:]
        if data.endswith(b"0\r\n\r\n"):
            self.finish(self.left == 0)
            self.idle.append(self)

    def connection_lost(self, exc):
        if self in self.idle:
            self.idle.remove(self)
        self.finish(False)

    def finish(self, well):
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(well)


async def open_loop(base, rate, seconds, chunks, prompt, seed):
    """Send requests as a Poisson process; returns the seconds to the first byte of each, sorted, and failures."""
    loop, draw, parts = asyncio.get_running_loop(), random.Random(seed), urlsplit(base)
    body = b'{"model":"m","prompt":"%b","max_tokens":%d,"stream":true}' % (prompt.encode(), chunks)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
    request = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
    idle, firsts, said = [], [], Counter()

    async def one():
        begin = time.perf_counter()  # timers of a loop are late by up to a millisecond, which is not the router's
        try:
            if idle:
                ask = idle.pop()
            else:
                _, ask = await loop.create_connection(lambda: _Ask(idle), parts.hostname, parts.port)
            ask.send(request, chunks)
            well = await asyncio.wait_for(ask.ended, 60)
        except (OSError, TimeoutError):
            well = False
        said[well] += 1
        if well:
            firsts.append(ask.first - begin)

    due, end, running = loop.time() + 0.05, loop.time() + 0.05 + seconds, set()
    while due < end:
        await asyncio.sleep(due - loop.time())
        task = loop.create_task(one())
        running.add(task)
        task.add_done_callback(running.discard)
        due += draw.expovariate(rate)
    await asyncio.gather(*running)
    for ask in idle:
        ask.transport.close()
    return sorted(firsts), said[False]
