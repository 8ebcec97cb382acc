"""Envoy with the endpoint picker before the engines: streams stay streams, and a dead picker has a reason."""

from __future__ import annotations

import time

from tests.engine.clients import FAILED, ask
from tests.engine.fleet import Fleet
from tests.engine.http_raw import metric, send
from tests.engine.row import Row


def gateway(fleet: Fleet) -> Row:
    """Send through Envoy, then kill the picker."""
    fleet.start_router("auto", advised=True)
    picker, envoy = fleet.start_gateway()
    ask(fleet, 0, 2, url=envoy.url)  # opens connections
    direct, stream = (ask(fleet, 1, 400, url=url) for url in (fleet.urls[0], envoy.url))
    body = {"model": "tiny", "prompt": "hello", "max_tokens": 8, "ignore_eos": True}
    whole = send(envoy.url, "/v1/completions", body)
    wrong = send(envoy.url, "/v1/completions", {**body, "temperature": -3})
    models = send(envoy.url, "/v1/models")
    unknown = send(envoy.url, "/v1/completions", {**body, "model": "gpt-5"})
    time.sleep(0.5)
    held, failed = metric(fleet.url, "lbopt_live_requests"), metric(fleet.url, FAILED)
    picker.kill()
    picker.popen.wait()
    dead = send(envoy.url, "/v1/completions", body)
    detail = [
        f"a stream of 400 tokens: {stream.status}, {len(stream.events) - 1} events in {len(stream.gaps)} pieces, "
        f"straight from an engine {len(direct.gaps)}",
        f"a whole answer: {whole.status}; a bad temperature: {wrong.told}; an unknown model: {unknown.told}",
        f"/v1/models: {models.status}, {len(models.body)} bytes",
        f"{held:.0f} held by the router, {failed:.0f} failed as it counts",
        f"with the picker dead: {dead.status}, {len(dead.body)} bytes in {dead.seconds:.1f} s",
    ]
    ok = stream.is_whole and len(stream.gaps) > len(direct.gaps) / 8 and whole.is_whole and held == 0
    ok = ok and dead.status == 503 and bool(dead.body) and (wrong.status, models.status) == (400, 200)
    told = f"a stream in {len(stream.gaps)} pieces; with the picker dead {dead.status}"
    for one in (fleet.processes.running[-1], picker):
        fleet.processes.stop(one)
    return Row("Envoy and the endpoint picker", told, detail, ok=ok)
