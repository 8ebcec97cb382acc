"""A record of two real ranks: ``python -m tests.engine.recording --into FOLDER --out RECORDS``.

A model with so many attention heads that a step takes longer the more tokens a rank holds, requests with longer
contexts, and rules in turn, as often as is asked. Each run leaves `requests.csv` (the router's record), `steps.csv`
(the engine's own log: one row a rank and step, which `lbopt audit` reads) and `measured.json`. Idle is measured and not
inferred: the share of the ranks' time that they waited in collectives, less what the rank waited that came last, which
is the transfer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from tests.engine.environment import EnvironmentProblem, made
from tests.engine.fleet import Fleet
from tests.engine.load import one_run, write_trace
from tests.engine.model import write_model
from tests.engine.processes import NotStartedError, processes

#: Keys and values of a token take 8 KiB.
WIDE = {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128}
COLUMNS = ("time", "rank", "running", "tokens", "prefill", "computed", "seconds", "waited")


def read_steps(folder: Path, begin: float, end: float) -> np.ndarray:
    """Return the steps of two ranks that began in a time; float64 (steps, 2, 8), columns as in `COLUMNS`.

    The k-th row of one rank is the k-th of the other: neither takes a step without the other.
    """
    ranks = [np.loadtxt(folder / f"rank-{rank}.csv", delimiter=",", skiprows=1, ndmin=2) for rank in (0, 1)]
    both = min(map(len, ranks))
    steps = np.stack([rows[:both] for rows in ranks], axis=1)
    return steps[(steps[:, 0, 0] >= begin) & (steps[:, 0, 0] <= end)]


def measured(steps: np.ndarray) -> dict[str, float]:
    """Return what the steps say: their time, idle share, imbalance, and how their time depends on tokens.

    Parameters
    ----------
    steps
        As of `read_steps`.
    """
    seconds, waited = steps[:, :, 6], steps[:, :, 7]
    tokens, prefill, busy = steps[:, :, 3], steps[:, :, 4], seconds - waited
    plain = prefill.sum(1) == 0  # steps that decode only
    rows = np.stack([np.ones(busy[plain].size), tokens[plain].ravel()], axis=1)
    (fixed, slope), *_ = np.linalg.lstsq(rows, busy[plain].ravel(), rcond=None)
    heavier = tokens[plain].argmax(1)
    last = np.where(tokens[plain, 0] == tokens[plain, 1], -1, waited[plain].argmin(1))
    return {
        "steps": float(len(steps)),
        "step_ms": 1e3 * float(seconds.mean()),
        "idle_share": float((waited - waited.min(1, keepdims=True)).sum() / seconds.sum()),
        "idle_share_decode": float((waited - waited.min(1, keepdims=True))[plain].sum() / seconds[plain].sum()),
        "idle_share_by_tokens": float(1 - tokens.sum() / (2 * tokens.max(1).sum())),
        "mean_imbalance_tokens": float(2 * tokens.max(1).mean() - tokens.sum(1).mean()),
        "fixed_ms": 1e3 * float(fixed),
        "ms_per_1000_tokens": 1e6 * float(slope),
        "correlation": float(np.corrcoef(rows[:, 1], busy[plain].ravel())[0, 1]),
        "heavier_rank_is_last": float((last == heavier)[last >= 0].mean()),
    }


def write_steps(steps: np.ndarray, begin: float, path: Path) -> None:
    """Write steps as one table, times from the begin of the run, ranks beside each other."""
    with path.open("w", encoding="utf-8") as lines:
        lines.write(",".join(COLUMNS) + "\n")
        for row in steps.reshape(-1, len(COLUMNS)):
            counts = ",".join(f"{value:.0f}" for value in row[1:6])
            lines.write(f"{row[0] - begin:.3f},{counts},{row[6]:.4f},{row[7]:.4f}\n")


def record(fleet: Fleet, steps: Path, given: argparse.Namespace) -> None:
    """Run every rule as often as is asked, in turn."""
    trace = fleet.processes.folder / "long.csv"
    write_trace(trace, given.requests, (120, 500), (60, 200), given.seed)
    for turn in range(given.repeats):
        for rule in given.rule or ["round-robin", "auto"]:
            begin = time.time()
            result, counts = one_run(fleet, rule, trace, given.rate)
            found = read_steps(steps, begin, time.time())
            told = {"rule": rule, "rate": given.rate, "served": len(result.served), "idle_by_router": counts["idle"]}
            told |= {name: float(np.mean(values)) for name, values in (("tpot", result.tpot), ("ttft", result.ttft))}
            out = given.out / f"{rule}-{turn + 1}"
            out.mkdir(parents=True, exist_ok=True)
            write_steps(found, begin, out / "steps.csv")
            folder = fleet.processes.folder / f"{fleet.name}-record-{rule}"
            (out / "requests.csv").write_bytes((folder / "requests.csv").read_bytes())
            (out / "measured.json").write_text(json.dumps(told | measured(found), indent=1), encoding="utf-8")
            print(json.dumps(told | measured(found)), flush=True)


def main() -> int:
    """Make the environment, start the ranks, record; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.recording", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(".engine"), help="folder of the environment")
    parser.add_argument("--out", type=Path, default=Path("engine-records"), help="folder for the records")
    parser.add_argument("--rule", action="append", help="of the router; may be repeated")
    parser.add_argument("--repeats", type=int, default=1, help="runs of each rule, in turn")
    parser.add_argument("--requests", type=int, default=120)
    parser.add_argument("--rate", type=float, default=0.8, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        environment = made(given.into, print)
        logs = environment.folder / "logs"
        logs.mkdir(exist_ok=True)
        model = write_model(environment.folder / "wide", **WIDE)
        with processes(logs) as started:
            fleet = Fleet("ranks", environment, started)
            steps = logs / f"steps-{time.time():.0f}"
            fleet.start_engines(model, "--no-enable-prefix-caching", "--max-model-len", "4096", steps=steps)
            record(fleet, steps, given)
    except (EnvironmentProblem, NotStartedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
