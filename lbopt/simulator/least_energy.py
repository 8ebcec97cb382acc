"""The least energy of a whole run, whatever the rule.

A step of dt seconds takes (P_idle G + (P_peak - P_idle) sum of duties) dt. Where duties go by shares u_g of the
heaviest load, they are at least u_g (readings share, split and split-fixed-busy of `lbopt.hardware.energy`), so with
the total load S and the largest load m the sum of duties is at least x = S / m, which lies between 1 and G. With
dt >= c + t m there are two bounds of the whole run, and the larger one counts:

- all idle power in the least seconds T, and the rise by (c + t m) S / m = c x + t S >= c + t S:
  P_idle G T + (P_peak - P_idle) (t W + c K+), with K+ the least number of steps that read a load;
- both together: a step costs at least f(S) = P_idle G c + (P_peak - P_idle) t S + min over x of
  (P_idle G t S / x + (P_peak - P_idle) c x). A minimum of lines is concave, so f lies above its chord from 0 to the
  largest S that slots allow, and the sum over K steps above K f(0) + W (f(S_max) - f(0)) / S_max.

In the order ``theory`` loads are read at the barrier: c = C and W as in `ceiling`. In the order ``paper`` they are read
after growth and completions: a worker holds at most B tokens more than at the barrier, so c = C - t B, and the loads
add up to sum of (s + 1) + ... + (s + o - 1). If C < t B there, only dt >= C is used. The reading mfu does not go by
loads; its floor is idle power alone. Manual: *Ceilings*.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lbopt.model import Trace
from lbopt.simulator.setting import SimulationSetting

#: More than what the few roundings of the chord can add, as a share.
_ROUNDING = 2.0**-40


def least_joules(trace: Trace, setting: SimulationSetting, steps: int, seconds: Fraction) -> float:
    """Return the least energy of a whole run, J, rounded down.

    Parameters
    ----------
    trace, setting
        Requests; fleet, law, power and event order. Workers without detail.
    steps, seconds
        Least number of steps, and least seconds of all of them.
    """
    power, form, G = setting.power, setting.form_for(trace), setting.fleet.num_workers
    rise = power.peak_watts - power.idle_watts
    idle = Fraction(power.idle_watts) * G * seconds
    if power.reading == "mfu":
        return float(idle) * (1 - _ROUNDING)
    prompt, output = (np.array(lengths, dtype=object) for lengths in (trace.prompt, trace.output))
    at_barrier = setting.event_order == "theory"
    first = 0 if at_barrier else 1  # age at which a request is read for the first time
    work = int((prompt * (output - first) + output * (output - 1) // 2).sum())
    read = output - (prompt == 0).astype(int) if at_barrier else output - 1  # steps that read a load of the request
    with_load = max(int(read.max()), -(-int(read.sum()) // setting.num_slots))
    C, t = Fraction(form.fixed), Fraction(form.per_token)
    c = C if at_barrier else C - t * setting.fleet.slots_per_worker
    apart = idle + Fraction(rise) * C * with_load
    if c < 0:
        return float(apart) * (1 - _ROUNDING)
    apart = max(apart, idle + Fraction(rise) * (t * work + c * with_load))
    largest = int(np.sort(prompt + output - 1)[::-1][: setting.num_slots].sum())
    together = _along_the_chord(steps, work, largest, float(c), float(t), power.idle_watts * G, rise, G)
    return max(float(apart), together) * (1 - _ROUNDING)


def _along_the_chord(
    steps: int, work: int, largest: int, fixed: float, per_token: float, idle: float, rise: float, workers: int
) -> float:
    """Return K f(0) + W (f(S_max) - f(0)) / S_max, J.

    Parameters
    ----------
    steps, work, largest
        K, W and S_max.
    fixed, per_token
        Least seconds of a step, and for each token of the heaviest load.
    idle, rise
        W, of the whole idle fleet; from idle to peak of one worker.
    workers
        G.
    """
    if largest == 0:
        return steps * idle * fixed
    waits, works = idle * per_token * largest, rise * fixed  # a step costs waits / x + works x, x from 1 to G
    best = math.sqrt(waits / works) if works > 0 else float(workers)
    x = min(max(best, 1.0), float(workers))
    slope = rise * per_token + (waits / x + works * x) / largest
    return steps * idle * fixed + work * slope
