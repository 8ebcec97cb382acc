"""What today's price hangs on: one group of constants at a time at its 5 and 95 % ends, all others nominal.

Constants of the calibrated law are taken in groups that a reader knows: what the engine does beside bytes and
arithmetic, memory, arithmetic, experts, messages, and the effects of the engine's own run. The logarithm of the step is
taken as linear in them, so a group moves it by 1.645 standard deviations of g'x, where g are the slopes of the group's
constants and x is normal with their covariance under what is believed. The effects of a run of which no row is known
have Student's law, and move it by that law's quantile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.calibrated import PARAMETERS, StepFeatures, step_parts
from lbopt.studies.cost.device_law import DeviceDraws
from lbopt.studies.cost.load_point import LoadPoint
from lbopt.studies.cost.outcome import Sensitivity

Values = NDArray[np.float64]

#: Groups of parameters; the last two entries of a posterior are the effects of the run.
GROUPS: dict[str, tuple[str, ...]] = {
    "launches and scheduling": ("fixed", "launch", "host", "latent", "year"),
    "memory of kernels": ("memory", "attention"),
    "arithmetic of kernels": ("compute", "prompt"),
    "experts": ("grouped", "hot"),
    "messages": ("link", "reduce", "beyond", "call", "overlap"),
}
RUN = "the engine's own tuning"
RENTAL = "rental"

_Z = 1.6449
_NUDGE = 1e-4
#: A group that moves the price by less is not in it: no prompt is read, or the arithmetic hides behind memory.
_FLAT = 1e-6


def sensitivities(device: DeviceDraws, point: LoadPoint, devices: int) -> list[Sensitivity]:
    """Return what the price a million tokens of `point` under the calibrated law hangs on, the largest first."""
    believed = device.believed(point, devices)
    heaviest = replace(device.decode_step(point, devices), context_tokens=max(point.max_load, 1.0) / point.running)
    features = StepFeatures.of([heaviest])

    def log_step(x: Values) -> float:
        return float(np.log(step_parts(x[:-2], features).of_run(x[-2:])[0]))

    mean = believed.mean
    slopes = np.array([_slope(log_step, mean, place) for place in range(mean.size)])
    nominal = np.exp(log_step(mean)) * device.rental[0] * devices / 3600 / (point.running * device.accepted) * 1e6
    if not np.isfinite(nominal):
        return []
    found = []
    names = [parameter.name.partition("/")[0] for parameter in PARAMETERS]
    places = {group: [i for i, name in enumerate(names) if name in members] for group, members in GROUPS.items()}
    places[RUN] = [mean.size - 2, mean.size - 1]
    for group, chosen in places.items():
        moved = slopes[chosen]
        spread = float(np.sqrt(moved @ believed.covariance[np.ix_(chosen, chosen)] @ moved))
        if spread < _FLAT:
            continue
        moves = np.exp((believed.reach if group == RUN else _Z) * spread)
        found.append(Sensitivity(group, float(nominal / moves), float(nominal * moves)))
    rental = np.quantile(device.rental[1:], (0.05, 0.95)) / device.rental[0] if device.rental[0] > 0 else np.ones(2)
    found.append(Sensitivity(RENTAL, float(nominal * rental[0]), float(nominal * rental[1])))
    return sorted(found, key=lambda one: -one.swing)


def _slope(log_step: Callable[[Values], float], mean: Values, place: int) -> float:
    step = np.zeros(mean.size)
    step[place] = _NUDGE
    return (log_step(mean + step) - log_step(mean - step)) / (2 * _NUDGE)
