"""Plans of faults drawn from a seed: each kind in some of the plans, mild or wild."""

import numpy as np

from lbopt.prefill.protocol.faults import FaultPlan, Outage


def random_plan(rng: np.random.Generator, num_instances: int, until: float, mean_pass: float) -> FaultPlan:
    """Draw faults that are over at `until` s: each kind in some of the plans, mild or wild.

    Parameters
    ----------
    rng
        Its only source of chance.
    num_instances
        Of the fleet.
    until
        s.
    mean_pass
        s, of a pass without faults: delays and outages are some of them long.
    """

    def chance(most: float) -> float:
        return float(rng.random() * most) if rng.random() < 0.4 else 0.0

    def outages(least: float = 0.0) -> tuple[Outage, ...]:
        if rng.random() < 0.6:
            return ()
        drawn = []
        for _ in range(int(rng.integers(1, 4))):
            start = float(rng.random() * 0.8 * until)
            end = min(until, start + float(rng.exponential(6 * mean_pass)))
            # One time in four it takes the whole fleet.
            hit = range(num_instances) if rng.random() < 0.25 else (int(rng.integers(num_instances)),)
            drawn += [Outage(g, start, end) for g in hit]
        return tuple(drawn)

    def steps() -> tuple[tuple[float, float], ...]:
        if rng.random() < 0.6:
            return ()
        size = float(rng.choice([1e-6, 1.0, 20.0])) * mean_pass
        count = int(rng.integers(1, 4))
        return tuple((float(rng.random() * until), float(rng.normal() * size)) for _ in range(count))

    return FaultPlan(
        lose=1.0 if rng.random() < 0.03 else chance(0.6),
        lose_batch=chance(0.5),
        lose_answer=chance(0.5),
        duplicate=chance(0.6),
        delay=chance(0.8),
        longest_delay=float(rng.choice([0.1, 1.0, 8.0])) * mean_pass,
        slow=chance(0.3),
        slow_factor=float(rng.choice([0.2, 3.0, 7.0, 20.0])),
        outlier=chance(0.3),
        spurious=chance(0.5),
        early=chance(0.6),
        late=chance(0.6),
        timer_error=float(rng.choice([1e-9, 0.1, 3.0])) * mean_pass,
        mute=outages(),
        partitions=outages(),
        cut_loses=bool(rng.random() < 0.5),
        crashes=outages(),
        restarts=outages(),
        lapses=outages(),
        clock=steps(),
        detection=float(rng.choice([0.0, 1.0, 4.0])) * mean_pass,
        until=until,
    )
