"""Write fleet.csv: the log of a router that serves eight workers by round robin. Made up by a simulation, not measured.

Requests are those of the family azure-like. The time of a step varies by 3 % beside what its heaviest worker asks for;
the last requests still run where the log ends, and a few were cancelled.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import lbopt

SEED = 7


def main(path: Path = Path(__file__).parent / "fleet.csv", count: int = 2600) -> None:
    """Simulate, let steps vary, and write the log up to the time at which the last request arrives."""
    run = lbopt.simulate(
        "azure-like",
        "round-robin",
        workers=8,
        slots=32,
        requests=count,
        seed=SEED,
        arrivals="trace",
        load=0.6,
        step_time="affine:fixed=0.011,per_token=3e-7",
        event_order="theory",
    )
    rng = np.random.default_rng(SEED)
    end = run.steps["clock"]
    before = np.concatenate([[0.0], end])
    took = run.steps["seconds"] * np.exp(rng.normal(0, 0.03, end.size))
    idle = np.diff(before) - run.steps["seconds"]
    after = np.concatenate([[0.0], np.cumsum(took + idle)])

    def moved(times: np.ndarray) -> np.ndarray:
        return np.interp(times, before, after)

    start, finish = moved(run.requests["start_clock"]), moved(run.requests["finish_clock"])
    arrival = np.minimum(moved(run.requests["reveal_clock"]), start)
    output, last = run.trace.output.copy(), arrival.max()
    cancelled = rng.random(count) < 0.01
    running = finish > last
    output[running] = 0

    def stamp(times: np.ndarray) -> pd.Series:
        return pd.Series(pd.Timestamp("2026-03-02T09:00:00Z") + pd.to_timedelta(times, unit="s")).dt.strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ"
        )

    log = pd.DataFrame(
        {
            "request_id": [f"req-{value:08x}" for value in rng.choice(2**32, count, replace=False)],
            "arrival": stamp(arrival),
            "decode_start": stamp(start),
            "finished": stamp(finish).where(~running, ""),
            "prompt_tokens": run.trace.prompt,
            "output_tokens": pd.Series(output).astype(str).where(~running, ""),
            "worker": [f"decode-{g}" for g in run.requests["worker"]],
            "status": np.where(running, "running", np.where(cancelled, "cancelled", "finished")),
        }
    )
    log = log[start <= last].sort_values("arrival", kind="stable")
    log.to_csv(path, index=False)


if __name__ == "__main__":
    main()
