"""What runs in the engine test: ranks of vLLM, the router, the endpoint picker and Envoy, all on loopback."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.engine.environment import Environment
from tests.engine.processes import Process, Processes, wait_until_up
from tests.serving.faults.routers import free_ports

#: Sequences that a rank runs at once.
SLOTS = 8
MODEL = "tiny"
#: Opens the doors of advice and of workers.
ROUTE_TOKEN = "engine-test-token"
#: Seconds within which engines have to be up, with other work on the machine; and the router, which may compile.
ENGINES_UP, ROUTER_UP = 540.0, 240.0
_ROOT = Path(__file__).resolve().parents[2]
#: One thread a rank, nothing fetched, nothing reported, and no kernels compiled while requests wait.
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
#: Other processes of this test come first: engines would leave them no core.
_NICE = ("nice", "-n", "3")


@dataclass(slots=True)
class Fleet:
    """Two engines, and the router before them.

    Parameters
    ----------
    name
        `ranks`, which meet in every step, or `singles`, which do not.
    environment, processes
        What to start, and where it runs.
    engines, router, advised
        What was started, and whether the router only advises.
    seconds
        Until the engines were up.
    """

    name: str
    environment: Environment
    processes: Processes
    engines: list[Process] = field(default_factory=list)
    router: Process | None = None
    advised: bool = False
    seconds: float = 0.0

    @property
    def url(self) -> str:
        """Address of the router."""
        assert self.router is not None
        return self.router.url

    @property
    def urls(self) -> list[str]:
        """Addresses of the engines."""
        return [engine.url for engine in self.engines]

    def start_engines(self, model: Path, *more: str, steps: Path | None = None) -> None:
        """Start both engines and wait until they are up.

        Parameters
        ----------
        model
            Folder of the model.
        more
            Further options of `vllm serve`; a later one wins.
        steps
            Folder of the step log.
        """
        ports = free_ports(3)
        env = {**_QUIET, "PATH": f"{self.environment.bin}{os.pathsep}{os.environ['PATH']}"}
        env |= {"LBOPT_STEP_LOG": str(steps)} if steps else {}
        words = [*_NICE, str(self.environment.bin / "vllm"), "serve", str(model), "--served-model-name", MODEL]
        words += ["--load-format", "dummy", "--enforce-eager", "--host", "127.0.0.1", "--max-num-seqs", str(SLOTS)]
        words += ["--max-model-len", "2048", "--max-num-batched-tokens", "2048", *more]
        for rank, port in enumerate(ports[:2]):
            together = ["--data-parallel-size", "2", "--data-parallel-rank", str(rank)]
            together += ["--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", str(ports[2])]
            own = [*words, "--port", str(port), *(together if self.name == "ranks" else [])]
            url = f"http://127.0.0.1:{port}"
            self.engines.append(self.processes.start(f"{self.name}-engine-{rank}", own, url, env))
        self.seconds = wait_until_up(self.engines, "/health", ENGINES_UP)

    def start_router(self, policy: str = "auto", *more: str, advised: bool = False) -> Process:
        """Start the router, or another one in its place, and wait until it is ready."""
        self.stop_router()
        self.advised = advised
        folder, port = self.processes.folder, free_ports(1)[0]
        fleet = folder / f"{self.name}.toml"
        fleet.write_text(fleet_file(self.urls, together=self.name == "ranks", advised=advised), encoding="utf-8")
        words = [sys.executable, "-m", "lbopt", "serve", "--fleet", str(fleet), "--policy", policy]
        words += ["--port", str(port), *more]
        env = {"PYTHONPATH": str(_ROOT), "LBOPT_ROUTE_TOKEN": ROUTE_TOKEN, "LBOPT_ADMIN_TOKEN": ROUTE_TOKEN}
        url = f"http://127.0.0.1:{port}"
        self.router = self.processes.start(f"{self.name}-router", words, url, env)
        wait_until_up([self.router], "/ready", ROUTER_UP)
        return self.router

    def start_sglang_router(self) -> Process:
        """Start the router of SGLang before the same engines."""
        port, other = free_ports(2)
        words = [str(self.environment.bin / "smg"), "launch", "--host", "127.0.0.1", "--port", str(port)]
        words += ["--prometheus-port", str(other), "--policy", "round_robin", "--worker-urls", *self.urls]
        router = self.processes.start(f"{self.name}-sglang-router", words, f"http://127.0.0.1:{port}")
        wait_until_up([router], "/health", ROUTER_UP)
        return router

    def stop_router(self) -> None:
        """End the router, so that its record is whole."""
        if self.router is not None:
            self.processes.stop(self.router)
            self.router = None

    def start_gateway(self) -> tuple[Process, Process]:
        """Start the endpoint picker and Envoy before the router; return both once Envoy is live."""
        picked, front, admin = free_ports(3)
        folder = self.processes.folder
        script = _ROOT / "examples" / "endpoint_picker" / "picker.py"
        paths = os.pathsep.join((str(_ROOT), str(self.environment.picker)))
        words = [sys.executable, str(script), "--router", self.url, "--port", str(picked)]
        env = {"PYTHONPATH": paths, "LBOPT_ROUTE_TOKEN": ROUTE_TOKEN}
        picker = self.processes.start(f"{self.name}-picker", words, f"http://127.0.0.1:{picked}", env)
        wait_until_up([picker], "", ROUTER_UP)
        config = folder / "envoy.yaml"
        config.write_text(envoy_file(front, picked, admin), encoding="utf-8")
        words = [str(self.environment.bin / "envoy"), "-c", str(config), "--concurrency", "1"]
        envoy = self.processes.start(
            f"{self.name}-envoy", [*words, "--disable-hot-restart"], f"http://127.0.0.1:{admin}"
        )
        wait_until_up([envoy], "/ready", 60)
        return picker, replace(envoy, url=f"http://127.0.0.1:{front}")

    def stop(self) -> None:
        """End all processes of this fleet."""
        self.processes.stop_all()
        self.engines, self.router = [], None


def fleet_file(urls: list[str], *, together: bool, advised: bool) -> str:
    """Return a fleet file: one group of engines that meet, or groups of one."""
    groups = {"decode": urls} if together else {f"single-{number}": [url] for number, url in enumerate(urls)}
    more = "advised = true\n" if advised else ""
    return "\n".join(
        f'[[group]]\nname = "{name}"\nmodel = "{MODEL}"\nslots = {SLOTS}\nkv_capacity = 100000\n'
        f"{more}workers = {json.dumps(members)}\n"
        for name, members in groups.items()
    )


def envoy_file(front: int, picker: int, admin: int) -> str:
    """Return the shipped configuration of Envoy with these ports."""
    text = (_ROOT / "examples" / "endpoint_picker" / "envoy.yaml").read_text(encoding="utf-8")
    for shipped, port in ((8080, front), (9002, picker), (9901, admin)):
        text = text.replace(f"port_value: {shipped}", f"port_value: {port}")
    return text
