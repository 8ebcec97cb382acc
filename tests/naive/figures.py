"""The metrics of a simulation, from the loads that its event order reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from naive.objective import imbalance, spread
from naive.simulation import Trajectory


@dataclass
class Metrics:
    """Averages over the steps 1..cut, and per-request figures over all requests."""

    cut: int
    average_imbalance: float
    average_spread: float
    throughput: float
    tpot: float
    energy: float
    idle_share: float
    waiting_steps: list[int]
    time_to_first_token: list[float]


def mean(values: Sequence[float]) -> float:
    """Sum over count; not a number when there is nothing to average (every request started at decision 0)."""
    if not values:
        return float("nan")
    return sum(values) / len(values)


def step_power(loads: Sequence[int]) -> float:
    """Watts of all workers: sum of 100 + 300 * (P_g / max P)^0.7 (bf_io.md section 6, "Use instead")."""
    watts = 0.0
    for load in loads:
        share = 0.0 if max(loads) == 0 else load / max(loads)
        watts += 100 + 300 * share**0.7
    return watts


def step_idle_share(loads: Sequence[int]) -> float:
    """Mean over workers of 1 - P_g / max(1, max P) (reference_conventions.json, "avg_gpu_idle_rate")."""
    total = 0.0
    for load in loads:
        total += 1 - load / max(1, max(loads))
    return total / len(loads)


def metrics(trajectory: Trajectory) -> Metrics:
    """The metrics of reference_conventions.json, from the loads that the event order reads.

    The window is steps 1..cut, cut = last start step; TPOT, waiting steps and time to first token are over all
    requests. With cut = 0 the averages and the throughput are not a number, and the energy is 0.
    """
    cut = max(trajectory.start_step)
    imbalances = []
    spreads = []
    idle_shares = []
    energy = 0.0
    tokens = 0
    seconds = 0.0
    for row in range(cut):
        loads = trajectory.read_loads[row]
        imbalances.append(imbalance(loads))
        spreads.append(spread(loads))
        idle_shares.append(step_idle_share(loads))
        energy += step_power(loads) * trajectory.duration[row]
        tokens += trajectory.active[row]
        seconds += trajectory.duration[row]
    per_token = []
    waiting_steps = []
    first_token = []
    for request in range(len(trajectory.output)):
        taken = trajectory.finish_clock[request] - trajectory.start_clock[request]
        per_token.append(taken / trajectory.output[request])
        waiting_steps.append(trajectory.start_step[request] - trajectory.reveal_step[request])
        end_of_first_step = trajectory.clock[trajectory.start_step[request]]  # row start_step is step start_step + 1
        first_token.append(end_of_first_step - trajectory.reveal_clock[request])
    return Metrics(
        cut=cut,
        average_imbalance=mean(imbalances),
        average_spread=mean(spreads),
        throughput=tokens / seconds if cut > 0 else float("nan"),
        tpot=mean(per_token),
        energy=energy,
        idle_share=mean(idle_shares),
        waiting_steps=waiting_steps,
        time_to_first_token=first_token,
    )
