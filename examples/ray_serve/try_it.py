"""A deployment whose requests are placed by `lbopt serve`: `python try_it.py`, with Ray Serve and lbopt installed.

Starts the router, two replicas of two slots that hold a request for a while, and sends requests; prints what the
router's record says of them. With ``--without-router`` none is started: every request must be answered all the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from ray import serve
from ray.serve.config import RequestRouterConfig

HERE = Path(__file__).resolve().parent
PORT, TOKEN, REQUESTS = 8123, "admin-token-of-an-example", 24
FLEET = """
[[group]]
name = "decode"
model = "m"
slots = 2
advised = true
workers = []
"""


@serve.deployment(
    num_replicas=2,
    max_ongoing_requests=2,
    ray_actor_options={"num_cpus": 0.1},
    request_router_config=RequestRouterConfig(
        request_router_class="lbopt_request_router.LbOptRequestRouter",
        request_router_kwargs={"url": f"http://127.0.0.1:{PORT}", "admin_token": TOKEN, "model": "m"},
    ),
)
class Engine:
    async def __call__(self, body: dict) -> str:
        await asyncio.sleep(0.2)
        return serve.get_replica_context().replica_id.unique_id


async def send(handle) -> list[str]:
    return await asyncio.gather(*(handle.remote({"prompt": "word " * (n + 1)}) for n in range(REQUESTS)))


def get(path: str) -> dict:
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def without_router() -> int:
    try:
        replicas = Counter(asyncio.run(send(serve.run(Engine.bind()))))
    finally:
        serve.shutdown()
    print("answers by replica, without a router:", dict(replicas))
    return 0 if sum(replicas.values()) == REQUESTS and len(replicas) == 2 else 1


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "fleet.toml").write_text(FLEET)
        command = [sys.executable, "-m", "lbopt", "serve", "--fleet", str(folder / "fleet.toml"), "--policy", "auto"]
        command += ["--port", str(PORT), "--record", str(folder / "record")]
        router = subprocess.Popen(command, env={**os.environ, "LBOPT_ADMIN_TOKEN": TOKEN})
        try:
            handle = serve.run(Engine.bind())
            while True:  # the first start compiles the rule
                try:
                    get("/workers")
                    break
                except OSError:
                    time.sleep(0.2)
            replicas = Counter(asyncio.run(send(handle)))
            time.sleep(1.5)
            left = get("/workers")["workers"]
            rows = (folder / "record" / "decisions.jsonl").read_text().splitlines()
            rows = [json.loads(row) for row in rows]
            outcomes = [row for row in rows if row["kind"] == "outcome"]
            longest = max(len(row["requests"]) for row in rows if row["kind"] == "decision")
            placed = Counter(row["worker"] for row in outcomes if row["ending"] == "finished")
            print("answers by replica:          ", dict(replicas))
            print("finished by worker in record:", dict(placed))
            print("held at the end:             ", [worker["running"] for worker in left])
            print("waiting in one decision:     ", longest, "at most")
            good = longest > 8 and placed == replicas and sum(placed.values()) == REQUESTS
            print("every request was placed by the router and ended there" if good else "THE BOOKS DIFFER")
            return 0 if good else 1
        finally:
            serve.shutdown()
            router.terminate()
            router.wait(10)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    sys.path.insert(0, str(HERE))
    sys.exit(without_router() if "--without-router" in sys.argv else main())
