"""What sizes lbopt carries: `python -m tests.scale [ROW ...]`; each row in a process of its own, with its memory.

A row says what was made, how many CPU seconds it took, the most memory that the process held, and what came of it. The
trace of a gigabyte is written to a temporary folder first; that is not counted.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

#: Requests of the trace file: about 1 GB.
LINES = 42_000_000


def _fleet(G: int, N: int, slots: int):
    from lbopt import StepProblem

    rng = np.random.default_rng(1)
    sizes = np.minimum(rng.lognormal(6.5, 1.2, N).astype(np.int64) + 1, 60_000)
    return StepProblem.now(rng.integers(20_000, 60_000, G), rng.integers(0, slots + 1, G), sizes)


def large_step() -> str:
    """A step of 4,096 workers and a million waiting requests, solved for two seconds."""
    from lbopt import solve

    problem = _fleet(4_096, 1_000_000, 3)
    result = solve(problem, time_limit=2)
    return f"imbalance {result.objective:,}, at least {result.bound:,}; {result.stop_reason}"


def many_slots() -> str:
    """A step of 512 workers with up to 36 free slots and 20,000 waiting requests, solved for two seconds."""
    from lbopt import solve

    result = solve(_fleet(512, 20_000, 36), time_limit=2)
    return f"imbalance {result.objective:,}, at least {result.bound:,}; {result.stop_reason}"


def large_pool() -> str:
    """One decision of the routers that come with lbopt over a pool of 100,000 requests, 512 workers."""
    from lbopt.policies import Observation, make_policy
    from lbopt.policies.decide import decide

    observation = Observation.of_problem(_fleet(512, 100_000, 3))
    seconds = {}
    for name in ("br-0", "max-min", "jsq-load", "round-robin"):
        policy = make_policy(name)
        decide(policy, observation)  # loads the kernel
        begun = time.process_time()
        decide(policy, observation)
        seconds[name] = time.process_time() - begun
    return ", ".join(f"{name} {1e3 * value:.1f} ms" for name, value in seconds.items())


def many_requests() -> str:
    """A generated trace of ten million requests."""
    from lbopt.instances import generate

    trace = generate("burstgpt-like", 10_000_000, seed=1)
    return f"{len(trace):,} requests, {int(trace.output.sum()):,} output tokens"


def large_trace() -> str:
    """A trace file of a gigabyte."""
    from lbopt.instances import read_trace
    from lbopt.instances.readers import Columns

    path = Path(sys.argv[-1])
    trace = read_trace(path, columns=Columns("prompt", "output", "arrival"))
    return f"{path.stat().st_size / 1e9:.2f} GB, {len(trace):,} requests"


ROWS: dict[str, Callable[[], str]] = {
    row.__name__: row for row in (large_step, many_slots, large_pool, many_requests, large_trace)
}


def _write_trace(path: Path) -> None:
    rng = np.random.default_rng(2)
    block = 1_000_000
    with path.open("w", encoding="utf-8") as stream:
        stream.write("arrival,prompt,output\n")
        for first in range(0, LINES, block):
            arrival = first + np.arange(block)
            prompt, output = rng.integers(10_000, 90_000, block), rng.integers(1, 2_000, block)
            rows = zip(arrival.tolist(), prompt.tolist(), output.tolist(), strict=True)
            stream.write("".join(f"{a}.0625,{p},{o}\n" for a, p, o in rows))


def main(names: list[str]) -> int:
    """Print a row for each name, all of them by default."""
    print("| row | CPU s | peak GiB | |")
    print("|---|--:|--:|---|")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names or ROWS:
            path = Path(folder) / "trace.csv"
            if name == "large_trace":
                _write_trace(path)
            done = subprocess.run(
                [sys.executable, "-m", "tests.scale", "--row", name, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            failed += done.returncode != 0
            last = done.stderr.strip().splitlines()[-1:] or ["no word"]
            print(done.stdout.strip() if done.returncode == 0 else f"| {name} | | | {last[0][:200]} |", flush=True)
    return 1 if failed else 0


def _one(name: str) -> int:
    said = ROWS[name]()
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
    print(f"| {ROWS[name].__doc__.splitlines()[0]} | {seconds:.1f} | {peak:.2f} | {said} |")
    return 0


if __name__ == "__main__":
    sys.exit(_one(sys.argv[2]) if sys.argv[1:2] == ["--row"] else main(sys.argv[1:]))
