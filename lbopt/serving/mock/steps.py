"""What every step of every group held and how long it took, as BalanceRoute's authors record it in the engine's
loop."""

from __future__ import annotations

import csv
from pathlib import Path

from lbopt.serving.mock.fleet import MockFleet
from lbopt.serving.mock.group import Step


class StepLog:
    """The steps of a fleet, in the order in which they began.

    Parameters
    ----------
    fleet
        Whose steps; it must not have started.
    """

    def __init__(self, fleet: MockFleet) -> None:
        self._fleet = fleet
        self._size = fleet.setting.workers_per_group
        self.rows: list[tuple[int, float, Step]] = []
        for number, driver in enumerate(fleet.drivers):
            driver.on_step = lambda begin, step, number=number: self.rows.append((number, begin, step))

    def write(self, path: Path) -> None:
        """Write one line a step: group, begin in s from the start of the fleet, seconds,
        then tokens and requests of each worker of the group."""
        workers = range(self._size)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            loads, running = [f"load_{w}" for w in workers], [f"running_{w}" for w in workers]
            writer.writerow(["group", "begin", "seconds", *loads, *running])
            for number, begin, step in self.rows:
                writer.writerow(
                    [number, repr(begin - self._fleet.begun), repr(step.seconds), *step.loads, *step.active]
                )
