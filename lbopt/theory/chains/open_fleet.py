"""An open fleet whose router sees reports of every T steps, and workers with queues of what was bound to them early.

`OpenFleet`: requests arrive by Poisson's law, start at once where they are sent and end with probability p in a step. In a step
running requests grow by a token, some end, a report is made if it is time, arrivals are sent, and loads are read. Rules:

* "random": a worker by chance;
* "blind": the least loaded by the last report;
* "power-of-two": the less loaded, by the last report, of two drawn with replacement;
* "counted": the least loaded by the last report and what was sent since, added token by token;
* "levelled": the least by what is expected of the load now, which is q (load + number) a step for the last report and likewise for
  what was sent since;
* "numbers": the fewest requests, expected in the same way.

With `slots` a worker runs so many; later ones wait in its queue, first come, first served.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.theory.laws.prompt_law import PromptLaw

RULES = ("random", "blind", "power-of-two", "counted", "levelled", "numbers")


@dataclass(frozen=True, slots=True)
class OpenRun:
    """What was read in every step after the burn-in.

    Parameters
    ----------
    imbalance
        float64 (steps,), tokens.
    waiting
        float64 (steps,): requests that wait in queues of workers, a worker.
    """

    imbalance: NDArray[np.float64]
    waiting: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFleet:
    """The fleet.

    Parameters
    ----------
    G
        Number of workers.
    arrivals
        Mean arrivals a worker and step.
    p
        Probability that a request ends in a step.
    prompts
        Law of the prompts.
    period
        Steps between reports.
    slots
        Requests that a worker runs at once; None = all of its.
    """

    G: int
    arrivals: float
    p: float
    prompts: PromptLaw
    period: int
    slots: int | None = None

    def run(self, rule: str, steps: int, burn_in: int, seed: int) -> OpenRun:
        """Run the rule for `burn_in` steps and then `steps` that are read.

        Parameters
        ----------
        rule
            One of `RULES`.
        steps
            Steps that are read.
        burn_in
            Steps before.
        seed
            Of the draws.
        """
        draw = np.random.default_rng([seed, RULES.index(rule)])
        G, q = self.G, 1 - self.p
        lengths = np.array(self.prompts.lengths)
        shares = np.array([float(share) for share in self.prompts.shares])
        shares /= shares.sum()
        worker, size, running = np.zeros((3, 0), np.int64)
        running = running.astype(np.bool_)
        imbalance, waiting = np.zeros((2, steps))
        load, number = np.zeros((2, G))
        for k in range(-burn_in, steps):
            kept = ~running | (draw.random(worker.size) >= self.p)
            worker, size, running = worker[kept], size[kept] + running[kept], running[kept]
            if self.slots is not None:
                running = self._started(worker, running)
            if (k + burn_in) % self.period == 0:
                load = np.bincount(worker, size, G)
                number = np.bincount(worker, minlength=G).astype(np.float64)
            elif rule in ("levelled", "numbers"):
                load, number = q * (load + number), q * number
            count = int(draw.poisson(self.arrivals * G))
            prompt = draw.choice(lengths, count, p=shares)
            if rule == "numbers":
                chosen = _chosen(rule, np.ones_like(prompt), number, draw)
            else:
                chosen = _chosen(rule, prompt, load, draw)
            if rule in ("counted", "levelled", "numbers"):
                load = load + np.bincount(chosen, prompt, G)
                number = number + np.bincount(chosen, minlength=G)
            worker, size = np.concatenate((worker, chosen)), np.concatenate((size, prompt))
            if self.slots is None:
                running = np.ones(worker.size, np.bool_)
            else:
                running = self._started(worker, np.concatenate((running, np.zeros(count, np.bool_))))
            if k >= 0:
                held = np.bincount(worker[running], size[running], G)
                imbalance[k] = G * held.max() - held.sum()
                waiting[k] = (worker.size - np.count_nonzero(running)) / G
        return OpenRun(imbalance, waiting)

    def _started(self, worker: NDArray[np.int64], running: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which requests run: those of a worker that came first. Running ones came before those that wait."""
        assert self.slots is not None
        free = self.slots - np.bincount(worker[running], minlength=self.G)
        found = running.copy()
        for i in np.flatnonzero(~running):
            if free[worker[i]] > 0:
                found[i] = True
                free[worker[i]] -= 1
        return found


def _chosen(
    rule: str, prompt: NDArray[np.int64], load: NDArray[np.float64], draw: np.random.Generator
) -> NDArray[np.int64]:
    """Return the worker of each arrival, int64 (n,), by what the router sees of the loads, float64 (G,)."""
    G, count = load.size, prompt.size
    if rule == "random":
        return draw.integers(0, G, count)
    if rule == "blind":
        return np.full(count, int(load.argmin()))
    if rule == "power-of-two":
        one, other = draw.integers(0, G, (2, count))
        return np.where(load[one] <= load[other], one, other)
    heap = [(float(tokens), g) for g, tokens in enumerate(load)]
    heapq.heapify(heap)
    chosen = np.zeros(count, np.int64)
    for i, tokens in enumerate(prompt.tolist()):
        seen, g = heap[0]
        chosen[i] = g
        heapq.heapreplace(heap, (seen + tokens, g))
    return chosen
