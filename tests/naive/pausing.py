"""Plans of workers that may pause requests, by the words of the manual (docs/detail.md)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from naive.detail_state import Request


@dataclass(eq=False)
class Counted:
    """A request as plans see it."""

    blocks: int
    is_new: bool = False


@dataclass
class Plan:
    """A worker's plan, and while it is made what runs and what waits."""

    number: int
    runs: list[Counted]
    waits: list[Counted]
    known: "list[Request]"
    leave: Counter[int] = field(default_factory=Counter)
    enter: Counter[int] = field(default_factory=Counter)

    @property
    def load(self) -> int:
        """Blocks of what runs."""
        return sum(item.blocks for item in self.runs)


def is_level(plans: Sequence[Plan], threshold: float) -> bool:
    """The end of the rounds, item 4."""
    largest = max(plan.load for plan in plans)
    above = largest - Fraction(sum(plan.load for plan in plans), len(plans))
    return above < Fraction(threshold) * largest or largest == 0 if threshold < 1 else above < Fraction(threshold)


def balance(given: Sequence[Plan], slots: Sequence[int], threshold: float) -> None:
    """Items 3 and 4: what runs and waits is changed into what is planned."""
    for plan, most in zip(given, slots, strict=True):
        while len(plan.runs) < most and plan.waits:
            plan.runs.append(plan.waits.pop(0))
            plan.runs[-1].is_new = True
    plans = list(given)
    for _ in range(1000):
        plans.sort(key=lambda plan: -plan.load)
        if is_level(plans, threshold):
            return
        lightest_swapped = swap(plans[-1], plans, heavier=True)
        if lightest_swapped:
            if is_level(plans, threshold):
                return
            plans.sort(key=lambda plan: -plan.load)
        heaviest_swapped = swap(plans[0], plans, heavier=False)
        if not lightest_swapped and not heaviest_swapped and not pause(plans):
            return


def swap(plan: Plan, plans: Sequence[Plan], heavier: bool) -> bool:
    """Item 4 (a); for the heaviest worker with `heavier` False."""
    mean = Fraction(sum(other.load for other in plans), len(plans))
    best, chosen = (abs(plan.load - mean), False), None
    for runs in plan.runs:
        for waits in plan.waits:
            more = waits.blocks - runs.blocks
            if more == 0 or (more > 0) != heavier:
                continue
            distance = abs(plan.load + more - (mean + Fraction(more, len(plans))))
            if distance < best[0] or (distance == best[0] and runs.is_new and not best[1]):
                best, chosen = (distance, runs.is_new), (runs, waits)
    if chosen is None:
        return False
    plan.runs.remove(chosen[0])
    plan.waits.remove(chosen[1])
    plan.runs.append(chosen[1])
    plan.waits.append(chosen[0])
    return True


def pause(plans: Sequence[Plan]) -> bool:
    """Item 4 (c)."""
    count, heaviest = sum(len(plan.runs) for plan in plans), plans[0]
    if count <= 1:
        return False

    def rate(requests: int, largest: int) -> Fraction:
        return requests / (20000 + Fraction(192, 10) * largest)

    second = plans[1].load if len(plans) > 1 else 0
    best, chosen = (rate(count, heaviest.load), False), None
    for runs in heaviest.runs:
        found = rate(count - 1, max(heaviest.load - runs.blocks, second))
        if found > best[0] or (found == best[0] and runs.is_new and not best[1]):
            best, chosen = (found, runs.is_new), runs
    if chosen is None:
        return False
    heaviest.runs.remove(chosen)
    heaviest.waits.append(chosen)
    return True
