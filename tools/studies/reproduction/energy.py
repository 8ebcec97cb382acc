"""BF-IO's energy column (arXiv 2601.17855, Table 1), digit for digit, and what other readings would have printed.

FCFS and JSQ are simulated; their JSQ goes by tokens. The rows of BF-IO are no integer program but a tuned heuristic,
so the decisions of its authors are replayed from their logs. The draw of the requests is theirs, seed 42: nothing is
random in these rows where the trace is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lbopt
from lbopt.exceptions import InputError
from lbopt.files import read_json
from lbopt.hardware import PowerLaw
from lbopt.hardware.energy import READINGS
from lbopt.instances import families, open_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.runner import Task
from lbopt.simulator import SimulationSetting, simulate
from lbopt.studies.printed import within
from tools.studies.reproduction import reasons
from tools.studies.reproduction.config import DEFAULT_REQUESTS, ReproductionConfig
from tools.studies.reproduction.drawn import pool_of
from tools.studies.reproduction.question import Question, asked, published_number
from tools.studies.reproduction.tolerances import every_digit, same_digits, same_side

TABLE = "bf-io-table-1"
FIRST_SEED = 42
WORKERS = 16
SIMULATED = {"FCFS": "fcfs", "JSQ": "jsq-load"}
#: The row printed with lookahead is H = 20 in the authors' code, although the text speaks of 80 steps.
LOGGED = {"BF-IO H=0": "h0", "BF-IO lookahead": "h20"}
REFERENCE = "reference_100k_metrics.json"
_LABELS = {"FCFS": "FCFS", "JSQ": "JSQ", "BF-IO H=0": "BFIO-H0", "BF-IO lookahead": "BFIO-H20"}


@dataclass(frozen=True, slots=True)
class Table1Run:
    """One row of the table; the replayed file is in the policy's name."""

    trace: str
    content: str
    count: int
    policy: str

    def task(self, seed: int) -> Task:
        """Return the task of one draw."""
        given = {"trace": self.trace, "content": self.content, "count": self.count, "policy": self.policy}
        return Task(f"{__name__}:measure", given | {"version": lbopt.__version__}, seed)


def measure(*, trace: str, content: str, count: int, policy: str, version: str, seed: int) -> dict[str, float]:
    """Return the energy in joules under every reading, by its name, and the seconds that were charged.

    Parameters
    ----------
    trace
        Path of the trace.
    content
        Digest of its content, part of the key.
    count
        Number of requests.
    policy
        Name of the rule.
    version
        Version of the code; it is part of the key of the task and not used otherwise.
    seed
        Seed of the draws.
    """
    if trace in families.NAMES:
        requests = families.generate(trace, count, seed)
    else:
        requests = open_trace(trace).resampled(count, seed)
    run = simulate(requests, make_policy(policy), SimulationSetting(Fleet(WORKERS, 72)), keep_loads=True, seed=seed)
    rows = run.window.rows
    step = {name: values[rows] for name, values in run.steps.items()}
    seconds, per_token = step["seconds"], run.setting.form.per_token
    joules = {
        reading: PowerLaw(reading=reading).fleet_watts(step["post_loads"], seconds, per_token, step["active"]) * seconds
        for reading in READINGS
    }
    return {name: float(values.sum()) for name, values in joules.items()} | {"seconds": float(np.sum(seconds))}


def questions(config: ReproductionConfig) -> list[Question]:
    """Return the rows; those of BF-IO only where its logs are given."""
    trace = config.trace("burstgpt")
    given = trace not in families.NAMES
    runs = {
        method: Table1Run(trace, pool_of(trace, 0).digest, config.count("energy", 8), policy)
        for method, policy in (SIMULATED | logs_of(config)).items()
    }
    shared: dict[str, Any] = {
        "item": "energy",
        "requests": config.trace_name("burstgpt"),
        "fleet": "G = 16, B = 72; 4.8875 ms + 100.525 ns a token",
        "arrivals": "closed loop, 64 waiting",
        "dispatch": "pooled",
        "seeds": (FIRST_SEED,) if given else config.all_seeds,
        "exact": given,
    }
    alike = same_digits(0) if given else within(0.05, "requests of a family stand in for the trace")
    unlike = "" if given else "other requests: a family stands in for the trace; "
    if config.count("energy", 8) != DEFAULT_REQUESTS["energy"]:
        unlike += f"{config.count('energy', 8):,} requests, not {DEFAULT_REQUESTS['energy']:,}; "
    found = []
    for reading in READINGS:
        for method, run in runs.items():
            found.append(
                asked(
                    quantity=f"energy of {method}, reading {reading}",
                    unit="kJ",
                    published=published_number(TABLE, "energy_kilojoules", method=method),
                    source=TABLE,
                    cells=(run,),
                    figure=lambda answer, reading=reading: answer[reading] / 1e3,
                    tolerance=alike,
                    nothing=None,
                    why=reasons.of_power(reading, WORKERS, unlike),
                    **shared,
                )
            )
    found += [_saving(reading, runs, unlike, shared) for reading in READINGS if "BF-IO H=0" in runs]
    return found + (_digits(config, runs, shared) if config.logs is not None else [])


def logs_of(config: ReproductionConfig) -> dict[str, str]:
    """Return the rules that replay BF-IO's logs, by the method of the table."""
    if config.logs is None or "energy" not in config.items:
        return {}
    if config.burstgpt is None or config.count("energy", 8) != DEFAULT_REQUESTS["energy"]:
        raise InputError(
            f"the logs in '{config.logs}' are of {DEFAULT_REQUESTS['energy']:,} requests of the BurstGPT file; "
            "give it by --burstgpt and leave --requests out, or leave --logs out"
        )
    found = {}
    for method, horizon in LOGGED.items():
        files = sorted(Path(config.logs).glob(f"*bfio-{horizon}_*.npz"))
        if len(files) != 1:
            raise InputError(
                f"folder '{config.logs}' has {len(files)} files *bfio-{horizon}_*.npz; expected one, the decision log "
                f"of {method}"
            )
        found[method] = f"replay:{files[0]}"
    return found


def _saving(reading: str, runs: dict[str, Table1Run], unlike: str, shared: dict[str, Any]) -> Question:
    before, after = (published_number(TABLE, "energy_kilojoules", method=method) for method in ("FCFS", "BF-IO H=0"))
    return asked(
        quantity=f"energy saved, FCFS to BF-IO H=0, reading {reading}",
        unit="%",
        published=100 * (1 - after / before),
        source=TABLE,
        cells=(runs["FCFS"], runs["BF-IO H=0"]),
        figure=lambda fcfs, bf_io: 100 * (1 - bf_io[reading] / fcfs[reading]),
        tolerance=same_side(0.0, "same sign"),
        why=reasons.of_saving(reading, unlike),
        **shared,
    )


def _digits(config: ReproductionConfig, runs: dict[str, Table1Run], shared: dict[str, Any]) -> list[Question]:
    """Return the rows against what the authors' own simulator gave in full, where the folder of logs says it."""
    file = Path(str(config.logs)) / REFERENCE
    if not file.is_file():
        return []
    reference = read_json(file)
    return [
        asked(
            quantity=f"energy of {method}, all digits of the authors' simulator",
            unit="J",
            published=float(reference[_LABELS[method]]["metrics"]["total_energy"]),
            source=REFERENCE,
            cells=(run,),
            figure=lambda answer: float(answer["share"]),
            tolerance=every_digit(),
            nothing=None,
            why=reasons.of_digits,
            **shared,
        )
        for method, run in runs.items()
    ]
