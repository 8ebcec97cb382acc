"""A finished run: one line per request, one line per step, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.display import Displayed
from lbopt.hardware.step_time import KINDS
from lbopt.model import Trace
from lbopt.policies.policy import STANDINGS, Ledger
from lbopt.simulator.metrics import Metrics, Window, default_window, measure
from lbopt.simulator.recorder import DETAIL_COLUMNS, STEP_COLUMNS, Happened
from lbopt.simulator.setting import SimulationSetting

if TYPE_CHECKING:
    import pandas as pd

#: Columns of `Run.requests`, with units.
REQUEST_COLUMNS: dict[str, str] = {
    "worker": "where it ran, or ran last",
    "reveal_step": "decision at which it became known",
    "start_step": "decision at which it started; its first token comes with the step after",
    "finish_step": "step with which it ended, start_step + output",
    "reveal_clock": "s, arrival, or revelation in a closed loop",
    "start_clock": "s",
    "finish_clock": "s, end of finish_step",
    "first_token_clock": "s, end of the step after start_step",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run(Displayed):
    """What a policy did to a trace.

    Parameters
    ----------
    trace, policy, setting, seed
        What was run; `policy` is the policy's name, `admission` how it bound requests.
    requests
        Arrays of shape (N,), see `REQUEST_COLUMNS`.
    steps
        Arrays of shape (K,), see `STEP_COLUMNS`; with `keep_loads` also ``barrier_loads`` and ``post_loads`` (K, G).
    decisions, real_choices
        Decisions taken, and those in which two feasible placements differ.
    seconds
        Wall time of the simulation.
    tally
        What a solver-backed policy says of its decisions (proved, claimed, open).
    solved
        Its decisions one by one, arrays of shape (decisions,): step, imbalance and bound in tokens, standing (place in
        `STANDINGS`). Empty arrays for other policies.
    happened
        What was counted; None without `SimulationSetting.detail`.
    """

    trace: Trace
    policy: str
    admission: str
    setting: SimulationSetting
    seed: int
    requests: dict[str, NDArray[Any]]
    steps: dict[str, NDArray[Any]]
    decisions: int
    real_choices: int
    seconds: float
    tally: dict[str, int] = field(default_factory=dict)
    solved: dict[str, NDArray[np.int64]] = field(default_factory=lambda: Ledger().columns())
    happened: Happened | None = None

    def __repr__(self) -> str:
        return (
            f"<Run {self.policy} ({self.admission}) on {self.trace.name}: {len(self.trace):,} requests, "
            f"{self.setting.fleet.num_workers} workers, {self.num_steps:,} steps>"
        )

    @property
    def num_steps(self) -> int:
        """Steps until the last request ended, drain included."""
        return int(self.steps["clock"].size)

    @property
    def open_gaps(self) -> NDArray[np.int64]:
        """Proved gaps of the decisions that were left open, tokens."""
        left_open = self.solved["standing"] == STANDINGS.index("open")
        gaps: NDArray[np.int64] = (self.solved["imbalance"] - self.solved["bound"])[left_open]
        return gaps

    @property
    def window(self) -> Window:
        """Steps 1 to the one of the last admission: what the BF-IO paper averages over."""
        return default_window(self.requests["start_step"], self.num_steps)

    def metrics(self, window: Window | None = None) -> Metrics:
        """Return the metrics over `window`, by default `self.window` with the TPOT of all requests."""
        return measure(self, window)

    def request_table(self) -> pd.DataFrame:
        """Return one row per request, with prompt and output."""
        import pandas as pd

        columns = {"prompt": self.trace.prompt, "output": self.trace.output}
        return pd.DataFrame(columns | {name: self.requests[name] for name in REQUEST_COLUMNS})

    def decision_table(self) -> pd.DataFrame:
        """Return one row per solved decision."""
        import pandas as pd

        names = np.array(STANDINGS)[self.solved["standing"]]
        return pd.DataFrame(self.solved | {"standing": names})

    def step_table(self) -> pd.DataFrame:
        """Return one row per step."""
        import pandas as pd

        names = [*STEP_COLUMNS, *(DETAIL_COLUMNS if self.happened is not None else ())]
        columns = {"step": np.arange(1, self.num_steps + 1)} | {name: self.steps[name] for name in names}
        return pd.DataFrame(columns | {"bound": np.array([*KINDS, ""])[self.steps["bound"]]})
