"""Small engines that speak OpenAI's API over real sockets, with faults on demand, and a router before them."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from contextvars import ContextVar

import aiohttp
from aiohttp import web

from lbopt.serving.router.fleet_file import fleet_of
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.run import Server
from lbopt.serving.router.service import Router

#: A test that hangs is a failure: nothing here takes that long once the rules are compiled.
LIMIT = 20.0
#: Nor does compiling them, on a busy machine with an empty cache.
COMPILING = 300.0
_TIMEOUT: ContextVar[asyncio.Timeout] = ContextVar("timeout")


def run(coroutine, limit=LIMIT):
    """Run a test on a fresh event loop, within the limit."""

    async def limited():
        async with asyncio.timeout(limit) as timeout:
            _TIMEOUT.set(timeout)
            return await coroutine

    return asyncio.run(limited())


async def compiled(router):
    """Wait until the rules are compiled: on a machine that has to, that takes long, and is not the test's time."""
    timeout, loop = _TIMEOUT.get(), asyncio.get_running_loop()
    end, begin = timeout.when(), loop.time()
    timeout.reschedule(begin + COMPILING)
    while not router.has_compiled:
        await asyncio.sleep(0.01)
    timeout.reschedule(end + loop.time() - begin)


class Engine:
    """A stub engine: `tokens` events for each request, `delay` seconds apart."""

    def __init__(self, tokens=4, delay=0.0, prompt_tokens=7, continuous=False):
        self.tokens, self.delay, self.prompt_tokens, self.continuous = tokens, delay, prompt_tokens, continuous
        self.requests = []  # (path, headers, body) of each
        self.running = self.most = 0
        self.faults = []  # taken one by one: a status, "reset", "reset-after:N", "freeze", "freeze-after:N", "cut"
        self.metrics = True
        self.is_healthy = True
        self.share = 0.1
        self.cut_at = None  # bytes of each write, to tear events apart
        self.recompute_at = None
        self.handoff = False
        self.disconnects = 0
        self.extra = b""
        self.stays = 0.0  # seconds between [DONE] and the end of the answer
        self.answer_headers = {}
        self.url = ""
        self._runner = None

    async def start(self, port=0):
        app = web.Application(client_max_size=2**26)
        app.add_routes(
            [
                web.post("/v1/completions", self._answer),
                web.post("/v1/chat/completions", self._answer),
                web.post("/tokenize", self._tokenize),
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
            ]
        )
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        return self

    async def stop(self):
        await self._runner.cleanup()

    async def _health(self, request):
        if not self.is_healthy:
            await asyncio.sleep(60)
        return web.Response(text="ok")

    async def _metrics(self, request):
        if not self.is_healthy:
            await asyncio.sleep(60)
        if not self.metrics:
            return web.Response(status=404)
        return web.Response(
            text=f'vllm:num_requests_running{{engine="0"}} {self.running}\n'
            f'vllm:num_requests_waiting{{engine="0"}} 0.0\nvllm:kv_cache_usage_perc{{engine="0"}} {self.share}\n'
        )

    async def _tokenize(self, request):
        return web.json_response({"count": 4321, "max_model_len": 9999})

    def _event(self, number, chat, ask):
        text = f"t{number} "
        choice = {"index": 0, "delta": {"content": text}} if chat else {"index": 0, "text": text}
        event = {"id": "x", "object": "chunk", "choices": [choice | {"finish_reason": None}], "unknown": {"kept": 1}}
        if self.continuous or (ask.get("stream_options") or {}).get("continuous_usage_stats"):
            event["usage"] = {"prompt_tokens": self.prompt_tokens, "completion_tokens": number + 1}
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    async def _answer(self, request):
        body = await request.read()
        self.requests.append((request.path, dict(request.headers), body))
        ask = json.loads(body)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._carry_out(request, ask)
        except asyncio.CancelledError:
            self.disconnects += 1
            raise
        finally:
            self.running -= 1

    async def _carry_out(self, request, ask):
        chat = request.path.endswith("chat/completions")
        fault = self.faults.pop(0) if self.faults else None
        count = min(self.tokens, ask.get("max_tokens") or self.tokens)
        if isinstance(fault, int):
            return web.json_response({"error": {"message": "no"}}, status=fault, headers=self.answer_headers)
        if fault == "reset":
            request.transport.abort()
            return web.Response()
        if fault == "freeze":
            await asyncio.sleep(60)
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": count}
        if not ask.get("stream"):
            await asyncio.sleep(self.delay * count)
            answer = {"choices": [{"text": "t " * count}], "usage": usage, "weird": [1.0, "\u00e9"]}
            if self.handoff:
                answer["kv_transfer_params"] = {
                    "do_remote_prefill": True,
                    "remote_block_ids": [1, 2, 3],
                    "remote_engine_id": "e",
                    "remote_host": "h",
                    "remote_port": 1,
                }
            return web.json_response(answer, headers={"X-Engine": "yes", **self.answer_headers})
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Engine": "yes", **self.answer_headers}
        )
        await response.prepare(request)
        kind, _, after = (fault or "").partition(":")
        for number in range(count):
            if kind == "reset-after" and number == int(after):
                request.transport.abort()
                return response
            if kind == "freeze-after" and number == int(after):
                await asyncio.sleep(60)
            if kind == "cut" and number == 2:
                await response.write_eof()
                return response
            if self.recompute_at == number:
                self.recompute_at = None
                choice = {"index": 0, "text": "", "finish_reason": "stop", "stop_reason": "recomputed"}
                await response.write(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
                await response.write(b"data: [DONE]\n\n")
                return response
            await self._write(response, self._event(number, chat, ask))
            if self.delay:
                await asyncio.sleep(self.delay)
        if (ask.get("stream_options") or {}).get("include_usage"):
            await self._write(response, b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n")
        await self._write(response, self.extra + b"data: [DONE]\n\n")
        await asyncio.sleep(self.stays)
        return response

    async def _write(self, response, data):
        if self.cut_at is None:
            await response.write(data)
            return
        for begin in range(0, len(data), self.cut_at):
            await response.write(data[begin : begin + self.cut_at])
            await asyncio.sleep(0)


QUICK = {
    "poll_seconds": 0.05,
    "poll_timeout": 0.3,
    "retry_seconds": 0.01,
    "retry_cap": 0.05,
    "drain_seconds": 1.0,
    "port": 0,
}


def plan_for(engines, slots=2, prefillers=(), **more):
    """Return a fleet of one barrier group."""
    return fleet_of(
        {
            "group": [{"name": "g", "model": "m", "slots": slots, "workers": [e.url for e in engines]} | more],
            "prefiller": [{"model": "m", "url": e.url} for e in prefillers],
        }
    )


#: The token of a gateway that asks `/route`.
ROUTE_TOKEN = "gateway-token"


@asynccontextmanager
async def fleet(engines, *, slots=2, prefillers=(), plan=None, advised=False, **options):
    """Start engines and a router before them; gives the router, a session of a client, and the router's address.

    With `advised` a gateway forwards, and the session has its token.
    """
    for engine in (*engines, *prefillers):
        await engine.start()
    if callable(plan):
        plan = plan()
    more = {"route_token": ROUTE_TOKEN} if advised else {}
    plan = plan or plan_for(engines, slots, prefillers, advised=advised)
    router = Router(plan, RouterOptions(**{**QUICK, **more, **options}))
    server = Server(router)
    await server.start()
    headers = {"Authorization": f"Bearer {ROUTE_TOKEN}"} if advised else {}
    async with aiohttp.ClientSession(headers=headers) as client:
        base = f"http://127.0.0.1:{server.port}"
        try:
            await compiled(router)
            while not router.is_ready:
                await asyncio.sleep(0.01)
            yield router, client, base
        finally:
            await server.stop(0.2)
            for engine in (*engines, *prefillers):
                await engine.stop()


def is_empty(router):
    """Whether nothing is left in the state: every slot and block came back."""
    state = router.fleet
    return (
        not state.live
        and not router.jobs
        and router.budget.held == 0
        and all(w.bound == w.load == 0 for g in state.groups.values() for w in g.workers)
        and all(not p.holders for p in state.prefillers.values())
        and sum(state.endings.values()) == state.arrivals
    )


async def becomes(condition, seconds=5.0):
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


async def stream(client, base, **more):
    """Ask for a stream, and return status and bytes."""
    body = {"model": "m", "prompt": "hello there", "stream": True} | more
    async with client.post(base + "/v1/completions", json=body) as answer:
        return answer.status, await answer.read()
