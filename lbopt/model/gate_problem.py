"""The gate problem: how many tokens of prompts each rank computes in each of the next steps.

G ranks in lockstep decode, and compute the prompts of their queues in order, in chunks. Step k takes

    T_k = max_g (decode[k][g] + cost * y[k][g]),    y[k][g] tokens of prompts on rank g, at most chunk[g],

and a prompt waits from the step of its release to the end of the step that completes it. Minimised is the time of all
steps plus a price for each unit of time that a prompt waits, or the time alone where no prompt may wait longer than a
limit. All prompts are completed within the window. A release after step 0 is a prompt that arrives then: the problem is
BF-IO's step with a time axis, for somebody who knows what comes, and so a bound on every gate.

Lemma (fill under the envelope). Given the times T_k, every rank may compute as much as fits: min(chunk, what is left
of what is released, (T_k - decode) / cost). Proof: by induction over k this makes the tokens done after each step as
large as any schedule with these times has them, so that every prompt is completed as early as in any of them. Hence a
gate decides nothing but the times of steps.

Times are integers in one unit that the caller chooses, so that all answers are exact. Source: lbopt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lbopt.exceptions import InfeasibleDecisionError, InputError

#: Tokens of prompts by step and rank.
Schedule = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class WaitingPrompt:
    """A prompt in the queue of a rank.

    Parameters
    ----------
    rank, tokens
        Whose queue it is in; tokens that it lacks, at least 1.
    released
        First step that may compute it; 0 = it waits already.
    waited
        Time that it has waited before the window.
    """

    rank: int
    tokens: int
    released: int = 0
    waited: int = 0


@dataclass(frozen=True)
class GateProblem:
    """A window of K steps on G ranks.

    Parameters
    ----------
    decode
        (K, G), time that each rank needs in each step without prompts, the fixed part of a step included; at least 1.
    chunk
        (G,), most tokens of prompts that a rank computes in a step.
    cost
        Time for one token of a prompt, at least 1.
    prompts
        In the order of the queues; on each rank releases ascend.
    price, per
        `price` units of the objective for each unit of time that a prompt waits, and `per` for each unit of the steps.
    longest
        No prompt has waited longer than this when it is completed; None = no limit.
    """

    decode: tuple[tuple[int, ...], ...]
    chunk: tuple[int, ...]
    cost: int
    prompts: tuple[WaitingPrompt, ...]
    price: int = 0
    per: int = 1
    longest: int | None = None

    def __post_init__(self) -> None:
        G = len(self.chunk)
        if not self.decode or any(len(row) != G or min(row, default=0) < 1 for row in self.decode):
            raise InputError(f"decode has a row that is not {G} times of at least 1; expected one for each rank")
        if self.cost < 1 or self.price < 0 or self.per < 1 or min(self.chunk) < 1:
            raise InputError("cost, per and every chunk are at least 1, and price is at least 0")
        last = [0] * G
        for i, prompt in enumerate(self.prompts):
            if not (0 <= prompt.rank < G and prompt.tokens >= 1 and prompt.waited >= 0):
                raise InputError(
                    f"prompt {i} is {prompt}; expected a rank below {G}, 1 token or more, no negative time"
                )
            if not last[prompt.rank] <= prompt.released < self.num_steps:
                raise InputError(
                    f"prompt {i} is released at step {prompt.released}; expected {last[prompt.rank]}, the release of "
                    f"the one before it in its queue, to {self.num_steps - 1}"
                )
            last[prompt.rank] = prompt.released

    @property
    def num_steps(self) -> int:
        """Steps of the window, K."""
        return len(self.decode)

    @cached_property
    def base(self) -> tuple[int, ...]:
        """Time of each step without prompts."""
        return tuple(map(max, self.decode))

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Tokens of each prompt's queue up to its own last one."""
        total, ends = [0] * len(self.chunk), []
        for prompt in self.prompts:
            total[prompt.rank] += prompt.tokens
            ends.append(total[prompt.rank])
        return tuple(ends)

    def released(self, rank: int, step: int) -> int:
        """Return the tokens that have been released on a rank when a step begins."""
        return sum(prompt.tokens for prompt in self.prompts if prompt.rank == rank and prompt.released <= step)

    def fill(self, times: Sequence[int]) -> list[list[int]]:
        """Return what every rank computes in steps of these times, as much as fits (the lemma above)."""
        done, schedule = [0] * len(self.chunk), []
        for k, time in enumerate(times):
            row = [
                max(0, min(chunk, self.released(g, k) - done[g], (time - self.decode[k][g]) // self.cost))
                for g, chunk in enumerate(self.chunk)
            ]
            done = [a + b for a, b in zip(done, row, strict=True)]
            schedule.append(row)
        return schedule

    def times(self, schedule: Schedule) -> list[int]:
        """Return the time of each step."""
        return [
            max(own + self.cost * y for own, y in zip(decode, row, strict=True))
            for decode, row in zip(self.decode, schedule, strict=True)
        ]

    def waits(self, schedule: Schedule) -> list[int]:
        """Return the time that each prompt waits in the window, by a count from the schedule alone.

        Raises
        ------
        InfeasibleDecisionError
            If a rank computes more than its chunk or than has been released, or a prompt is not completed, or waits too
            long.
        """
        times, done, waits = self.times(schedule), [0] * len(self.chunk), [0] * len(self.prompts)
        for k, row in enumerate(schedule):
            for g, y in enumerate(row):
                if not 0 <= y <= min(self.chunk[g], self.released(g, k) - done[g]):
                    raise InfeasibleDecisionError(
                        f"rank {g} computes {y} tokens in step {k}; expected 0 to "
                        f"{min(self.chunk[g], self.released(g, k) - done[g])}"
                    )
            for i, prompt in enumerate(self.prompts):
                if prompt.released <= k and done[prompt.rank] < self.ends[i]:
                    waits[i] += times[k]
            done = [a + b for a, b in zip(done, row, strict=True)]
        for i, prompt in enumerate(self.prompts):
            if done[prompt.rank] < self.ends[i]:
                raise InfeasibleDecisionError(f"prompt {i} is not completed in {self.num_steps} steps")
            if self.longest is not None and prompt.waited + waits[i] > self.longest:
                raise InfeasibleDecisionError(
                    f"prompt {i} has waited {prompt.waited + waits[i]} when it is completed; expected {self.longest} "
                    "or less"
                )
        return waits

    def value(self, schedule: Schedule) -> int:
        """Return the objective of a feasible schedule; see `waits` for errors."""
        return self.price * sum(self.waits(schedule)) + self.per * sum(self.times(schedule))
