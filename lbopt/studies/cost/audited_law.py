"""The step-time law that `lbopt audit` found in a fleet's own log, with its interval.

An audit writes seconds of a step = fixed + per_token * load of the heaviest worker, with 95 % intervals, and the loads
over time. The mean step of a log is known far better than how it divides, and the two parts err against each other. So
the slope is drawn, from the normal law that has its interval, and the fixed part is what keeps the step at the mean of
the log's heaviest loads, as in the audit's own table of how sure it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import exists, listed, read_json, shown

Values = NDArray[np.float64]

FILE = "audit.json"
#: Half of a 95 % interval of the normal law, in standard deviations.
_HALF = 1.959964
#: A law is taken for fleets of half to twice the workers that it was found on.
_FACTOR = 2


@dataclass(frozen=True, slots=True)
class AuditedLaw:
    """What an audit says of the steps of one fleet.

    Parameters
    ----------
    fixed, per_token
        Seconds of a step, and for each token on the heaviest worker.
    low, high
        95 % ends of `per_token`.
    heaviest
        Mean over time of the heaviest worker's load, tokens.
    workers
        Of the audited fleet.
    """

    fixed: float
    per_token: float
    low: float
    high: float
    heaviest: float
    workers: int

    def draws(self, count: int, rng: np.random.Generator) -> tuple[Values, Values]:
        """Return fixed part and slope, float64 (1 + count,), the found values first; neither falls below zero."""
        step = self.fixed + self.per_token * self.heaviest
        spread = (self.high - self.low) / (2 * _HALF)
        drawn = np.concatenate([[self.per_token], self.per_token + spread * rng.standard_normal(count)])
        most = step / self.heaviest if self.heaviest > 0 else math.inf
        slope = np.clip(drawn, 0.0, most)
        fixed = step - slope * self.heaviest
        return fixed, slope

    def check(self, workers: int) -> None:
        """Refuse a fleet of which the law does not speak."""
        low, high = math.ceil(self.workers / _FACTOR), self.workers * _FACTOR
        if not low <= workers <= high:
            raise InputError(
                f"the audit's law was found on {self.workers} workers, and {workers} were asked for; ask for {low} to "
                f"{high}, or leave step_time out"
            )


def is_audit(step_time: str) -> bool:
    """Return whether a step time names an output folder of `lbopt audit`, or a group of one."""
    return exists(_place(step_time)[0] / FILE)


def _place(step_time: str) -> tuple[Path, str]:
    """Return the folder and the group that ``folder`` or ``folder:group`` names."""
    folder, _, group = step_time.partition(":") if not exists(Path(step_time) / FILE) else (step_time, "", "")
    return Path(folder), group


def read_audited_law(step_time: str) -> AuditedLaw:
    """Read the law of an output folder of `lbopt audit`, or of a group of workers in it: ``folder:group``.

    Raises
    ------
    InputError
        The file lacks it, it has no load, or it has several groups and none of this name.
    """
    folder, group = _place(step_time)
    found: Any = read_json(folder / FILE)
    groups = found.get("groups", {}) if isinstance(found, dict) else {}
    if groups or group:
        if group not in groups:
            raise InputError(
                f"'{folder / FILE}' has the laws of {len(groups) or 'no'} groups of workers"
                f"{f', none of them {shown(group)}' if group else ''}; expected step_time={folder}"
                + (":GROUP with one of " + listed(groups) if groups else ", its one law")
            )
        found = groups[group]
    try:
        law, moments = found["law"], found["over_time"]
        low, high = (float(end) for end in law["per_token_interval"])
        heaviest = float(np.mean([float(moment["heaviest"]) for moment in moments])) if moments else 0.0
        read = AuditedLaw(float(law["fixed"]), float(law["per_token"]), low, high, heaviest, len(found["workers"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"'{folder / FILE}' holds no law of steps ({error}); write it with this lbopt audit") from None
    numbers = (read.fixed, read.per_token, read.low, read.high, read.heaviest)
    if not all(math.isfinite(number) for number in numbers) or min(read.fixed, read.per_token, read.heaviest) < 0:
        raise InputError(f"'{folder / FILE}' holds a law of steps with a part that is no number of zero or more")
    return read
