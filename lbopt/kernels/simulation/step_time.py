"""Seconds of a step in its barrier form; `lbopt/hardware/step_time/barrier_form.py` is the readable twin."""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.simulation.state import Setting


@kernel
def seconds_of_step(setting: Setting, load: Ints, running: Ints, experts: Floats, heaviest: int, active: int) -> float:
    """Return the seconds of a step.

    Parameters
    ----------
    setting
        Of the run.
    load, running
        int64 (G,), tokens and requests of each worker.
    experts
        float64 (G,), different experts of a layer that each worker uses.
    heaviest, active
        Largest load, tokens, and running requests of all workers.
    """
    if setting.seconds_per_expert > 0:
        alone = _slowest_by_experts(
            setting.seconds_per_token, setting.seconds_of_running, setting.seconds_per_expert, load, running, experts
        )
    elif setting.seconds_of_running.size == 0:
        alone = setting.seconds_per_token * heaviest
    else:
        alone = _slowest(setting.seconds_per_token, setting.seconds_of_running, load, running)
    return setting.fixed_seconds + alone + seconds_together(setting, load, active)


@kernel
def seconds_together(setting: Setting, load: Ints, active: int) -> float:
    """Return what all workers do together in a step, s.

    Parameters
    ----------
    setting
        Of the run.
    load
        int64 (G,), tokens of each worker.
    active
        Running requests of all workers.
    """
    together = 0.0
    if setting.seconds_per_mean_token > 0:
        total = 0
        for g in range(load.size):
            total += load[g]
        together = setting.seconds_per_mean_token * (total / load.size)
    if setting.seconds_of_active.size > 0:
        together += setting.seconds_of_active[active]
    return together


@kernel
def _slowest(per_token: float, of_running: Floats, load: Ints, running: Ints) -> float:
    """Return what the slowest worker needs by itself, s: it need not be the heaviest.

    Parameters
    ----------
    per_token
        s per token of the worker.
    of_running
        float64 (B + 1,), s by the worker's running requests.
    load, running
        int64 (G,), tokens and requests of each worker.
    """
    slowest = 0.0
    for g in range(load.size):
        slowest = max(slowest, per_token * load[g] + of_running[running[g]])
    return slowest


@kernel
def _slowest_by_experts(
    per_token: float, of_running: Floats, per_expert: float, load: Ints, running: Ints, experts: Floats
) -> float:
    """Return what the slowest worker needs by itself, s, where experts cost time.

    Parameters
    ----------
    per_token, of_running, load, running
        As in `_slowest`.
    per_expert
        s per different expert of a layer in use.
    experts
        float64 (G,), different experts of a layer that each worker uses.
    """
    slowest = 0.0
    for g in range(load.size):
        slowest = max(slowest, per_token * load[g] + of_running[running[g]] + per_expert * experts[g])
    return slowest
