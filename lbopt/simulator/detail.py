"""Detail: memory, chunks of prompts, drafts, pauses and speeds of workers, beside the plain simulation.

Fresh arrays of `Detail` for the compiled loop; all but its rules are empty without it.

Workers in detail: `Detail`, and the text in which users write it.

What each option does: the manual, page *detail*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.kernels.arrays import Ints, Record, Records, record, records
from lbopt.kernels.detail import state as compiled
from lbopt.kernels.detail.state import JOIN, RULES, TALLY, TRACK
from lbopt.kernels.gating import GATE, RANK, SBS, Gate
from lbopt.kernels.pausing import TERMS, Pausing
from lbopt.kernels.prefix_cache import ABSENT, NONE, PrefixCache
from lbopt.kernels.simulation.state import Requests
from lbopt.model import Fleet, RequestPrefixes, Trace
from lbopt.policies import CompiledPolicy, Policy
from lbopt.simulator.gates import read_gate
from lbopt.spec import duration, options_of

#: Arrays of a worker that begin with zeros.
_PER_WORKER = ("used", "moved")
#: What rules are shown of the workers that may be picked, where these are not all.
_SHOWN = ("open_workers", "shown_load", "shown_running", "shown_queued", "shown_tokens", "shown_own")


def fresh_detail(
    detail: Detail | None, fleet: Fleet, requests: Requests, seed: int, prefixes: RequestPrefixes | None
) -> compiled.Detail:
    """Return what the loop knows of workers before the first decision.

    Parameters
    ----------
    detail
        The options; None = none of it.
    prefixes
        Of the requests, where they are known.
    """
    N, G = (requests.prompt.size, fleet.num_workers) if detail is not None else (0, 0)
    chosen = Detail() if detail is None else detail

    def per_worker(value: int = 0) -> NDArray[np.int64]:
        return np.full(G, value, dtype=np.int64)

    rules = record(RULES)
    rules.on = detail is not None
    rules.blocks = -1 if chosen.preempt == "none" else (fleet.kv_capacity or 0) // chosen.block
    rules.block = chosen.block
    rules.kept_free = int(chosen.watermark * max(0, int(rules.blocks)))
    rules.swaps = chosen.preempt == "swap"
    rules.budget, rules.draft = chosen.prefill, chosen.draft
    rules.transfer, rules.compute_seconds = chosen.transfer, chosen.prefill_cost
    rules.move_seconds, rules.draft_seconds = chosen.swap_cost, chosen.draft_cost
    rules.seed = np.random.SeedSequence(seed).generate_state(2, np.uint64)[1]  # the first is that of reports

    slow, is_open = np.ones(G), per_worker(1)
    for worker, factor in chosen.slow:
        slow[worker] = factor
    events = chosen.events
    for _, worker, kind in reversed(events):  # the first event of a worker has the last word
        is_open[worker] = kind != JOIN
    size = np.array(requests.prompt[:N])
    shown = G or requests.allowed.shape[1]
    arrays: dict[str, Any] = {name: per_worker() for name in _PER_WORKER} | {
        **{name: np.zeros(shown, dtype=np.int64) for name in _SHOWN},
        "slow": slow,
        "is_open": is_open,
        "committed": np.zeros(G if rules.blocks >= 0 else 0, dtype=np.int64),
        "event_clock": np.array([second for second, _, _ in events], dtype=np.float64),
        "event_worker": np.array([worker for _, worker, _ in events], dtype=np.int64),
        "event_kind": np.array([kind for _, _, kind in events], dtype=np.int64),
        "gate": _fresh_gate(chosen, G, fleet),
        "ready": np.zeros(N),
        "first_token_step": np.full(N, -1, dtype=np.int64),
        "finish_step": np.full(N, -1, dtype=np.int64),
    }
    return compiled.Detail(
        rules=rules,
        tally=record(TALLY),
        seats=np.full((G, fleet.slots_per_worker), -1, dtype=np.int64),
        tracks=_tracks(chosen, rules.seed, size, requests.output[:N]),
        size=size,
        cache=_fresh_cache(chosen, rules, G, requests.prompt[:N], prefixes),
        pausing=fresh_pausing(chosen, G if chosen.pause != "none" else 0, fleet.slots_per_worker),
        **arrays,
    )


def _fresh_cache(
    detail: Detail, rules: Record, workers: int, prompt: Ints, prefixes: RequestPrefixes | None
) -> PrefixCache:
    """Return empty caches of prefixes, and note their size in `rules`.

    Parameters
    ----------
    detail, rules
        The options, and the loop's record of them.
    workers, prompt
        G, and int64 (N,), tokens.
    prefixes
        As of `fresh_detail`.
    """
    first, blocks, different, caches = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), 0, 0
    if detail.prefix_cache and workers:
        assert prefixes is not None
        first, blocks, different = prefixes.full_blocks(prompt)
        rules.cache_block, caches = prefixes.block_tokens, workers
        rules.cache_blocks = detail.prefix_cache // prefixes.block_tokens
    return PrefixCache(
        first=first,
        blocks=blocks,
        newer=np.full((caches, different), ABSENT, dtype=np.int32),
        older=np.full((caches, different), NONE, dtype=np.int32),
        newest=np.full(caches, NONE, dtype=np.int64),
        oldest=np.full(caches, NONE, dtype=np.int64),
        held=np.zeros(caches, dtype=np.int64),
        to_compute=np.zeros(workers if detail.prefill else 0, dtype=np.int64),
    )


def _fresh_gate(detail: Detail, workers: int, fleet: Fleet) -> Gate:
    """Return the gate before the first step, for so many workers."""
    chosen, terms = read_gate(detail.gate), record(GATE)
    terms.code, terms.shut, terms.is_first, terms.pending = chosen.code, chosen.computes, 1, -1
    terms.budget, terms.since = detail.prefill, -math.inf
    terms.capacity = -1 if fleet.kv_capacity is None else fleet.kv_capacity
    window = int(chosen.knobs.window) if chosen.code == SBS else 0
    ranks = records(workers if chosen.computes else 0, RANK)
    return Gate(terms=terms, knobs=chosen.knobs, ranks=ranks, seconds=np.zeros(window))


def fresh_pausing(detail: Detail, workers: int, slots: int) -> Pausing:
    """Return what pausing needs before the first step, for so many workers."""
    terms = record(TERMS)
    terms.mode = PAUSE.index(detail.pause)
    terms.first_step, terms.threshold = detail.pause_from, detail.pause_threshold
    terms.long_blocks, terms.stays = detail.pause_long, detail.pause_for

    counts = ("num_inside", "num_outside", "load", "order", "changed", "num_leaving", "num_entering", "candidates")
    arrays = {name: np.zeros(workers, dtype=np.int64) for name in counts} | {
        name: np.zeros((workers, 2 * slots), dtype=np.int64) for name in ("inside", "outside", "leaving", "entering")
    }
    return Pausing(terms=terms, paused=np.zeros(slots if workers else 0, dtype=np.int64), **arrays)


def _tracks(detail: Detail, seed: np.uint64, prompt: Ints, output: Ints) -> Records:
    """Return the tracks of all requests before they start.

    Parameters
    ----------
    detail, seed
        The options, and the seed of its draws.
    prompt, output
        int64 (N,), tokens.
    """
    tracks = records(prompt.size, TRACK)
    tracks.tokens, tracks.wanted = prompt, output
    tracks.computed = 0 if detail.prefill else prompt
    if detail.draft and prompt.size:
        from lbopt.kernels.detail.step import draw_chances

        draw_chances(seed, detail.acceptance, detail.spread, tracks)
    return tracks


PREEMPT = ("none", "recompute", "swap")
PAUSE = ("none", "static", "dynamic")

#: Options that name workers, `worker:value` or `worker@time`.
_OF_WORKERS = ("slow", "slots", "drain", "leave", "join")
_DURATIONS = ("swap_cost", "prefill_cost", "transfer", "draft_cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What workers do in detail; by default nothing beyond decoding.

    Parameters
    ----------
    preempt
        What happens where a worker's memory, `Fleet.kv_capacity`, is full: "recompute" or "swap"; "none": it never is.
    block, watermark
        Tokens of a block of memory; share of the blocks that stay free when a request is let in.
    swap_cost
        Seconds to move one token out of memory or in.
    prefill, prefill_cost
        Tokens that a worker may compute in a step, 0 where prompts are computed elsewhere; seconds for one of them.
    transfer
        Seconds between sending a request and the arrival of its memory.
    draft, acceptance, spread, draft_cost
        Tokens drafted for a request in a step; the mean chance that one is accepted, and the largest distance of a
        request's chance from it; seconds that drafting adds to a step.
    slow, slots
        By worker: factor of its own part of a step; slots.
    drain, leave, join
        Pairs of worker and second.
    prefix_cache
        Tokens of prompts that a worker remembers beside its running requests; 0 = none. Needs `prefill`.
    gate
        When ranks may compute prompts, such as "vllm:interval=8"; "none": whenever they can.
    pause
        "static" or "dynamic": running requests are held out of steps, as DyntraLB does.
    pause_from, pause_threshold
        First step after which; blocks by which the heaviest worker may exceed the mean, below 1 a share of its load.
    pause_long, pause_for
        Dynamic: blocks that a request must exceed to begin it; steps that it lasts after the last such one.
    """

    preempt: str = "none"
    block: int = 16
    watermark: float = 0.01
    swap_cost: float = 0.0
    prefill: int = 0
    prefill_cost: float = 0.0
    transfer: float = 0.0
    draft: int = 0
    acceptance: float = 0.7
    spread: float = 0.0
    draft_cost: float = 0.0
    slow: tuple[tuple[int, float], ...] = ()
    slots: tuple[tuple[int, int], ...] = ()
    drain: tuple[tuple[int, float], ...] = ()
    leave: tuple[tuple[int, float], ...] = ()
    join: tuple[tuple[int, float], ...] = ()
    prefix_cache: int = 0
    gate: str = "none"
    pause: str = "none"
    pause_from: int = 250
    pause_threshold: float = 5.0
    pause_long: int = 700
    pause_for: int = 256

    def __post_init__(self) -> None:
        for name, words in (("preempt", PREEMPT), ("pause", PAUSE)):
            if getattr(self, name) not in words:
                raise InputError(f"detail: {name} is {shown(getattr(self, name))}; expected {', '.join(words)}")
        for name, least, most, what in (
            ("block", 1, 2**20, "tokens, 1 to 2**20"),
            ("prefill", 0, 2**30, "tokens a step, 0 (computed elsewhere) to 2**30"),
            ("draft", 0, 64, "tokens, 0 to 64"),
            ("prefix_cache", 0, 2**40, "tokens, 0 to 2**40"),
            ("pause_from", 0, 2**40, "a number of steps, 0 to 2**40"),
            ("pause_long", 0, 2**40, "blocks, 0 to 2**40"),
            ("pause_for", 1, 2**40, "a number of steps, 1 to 2**40"),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InputError(f"detail: {name} is {shown(value)}; expected {what}")
        for name, below in (("watermark", True), ("acceptance", False), ("spread", False)):
            value = getattr(self, name)
            if not 0 <= value <= 1 or (below and value == 1):
                raise InputError(f"detail: {name} is {value:g}; expected a share from 0 to {'below ' * below}1")
        for name in _DURATIONS:
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"detail: {name} is {getattr(self, name):g} s; expected 0 seconds or more")
        if not 0 < self.pause_threshold < math.inf:
            raise InputError(
                f"detail: pause_threshold is {self.pause_threshold:g}; expected blocks above 0, or a share below 1"
            )
        if self.prefill and self.transfer:
            raise InputError(
                "detail: prefill computes prompts on the worker and transfer brings them from elsewhere; leave one out"
            )
        if self.prefix_cache and not self.prefill:
            raise InputError(
                "detail: prefix_cache saves the computation of prompts, which happens elsewhere; name prefill as well"
            )
        if read_gate(self.gate).computes and not self.prefill:
            raise InputError(
                f"detail: gate is {shown(self.gate)}, which holds back prompts that workers compute, and they compute "
                "none; name prefill as well"
            )
        if self.gate != "none" and self.pause != "none":
            raise InputError("detail: gate and pause both say who is let in; leave one out")
        for worker, factor in self.slow:
            if not 0 < factor < math.inf:
                raise InputError(f"detail: slow is {factor:g} for worker {worker}; expected a factor above 0")
        for name in ("drain", "leave", "join"):
            for worker, second in getattr(self, name):
                if not 0 <= second < math.inf:
                    raise InputError(f"detail: worker {worker} is to {name} at {second:g} s; expected 0 s or later")
        for name in ("slow", "slots"):
            named = [worker for worker, _ in getattr(self, name)]
            if len(named) > len(set(named)):
                raise InputError(f"detail: {name} names a worker twice: {', '.join(map(str, sorted(named)))}")

    @property
    def events(self) -> list[tuple[float, int, int]]:
        """Second, worker and kind (0 = join, 1 = drain, 2 = leave), in the order in which they happen."""
        kinds = (self.join, self.drain, self.leave)
        return sorted((second, worker, kind) for kind, pairs in enumerate(kinds) for worker, second in pairs)

    def describe(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data."""
        chosen = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return chosen | {name: [list(pair) for pair in chosen[name]] for name in _OF_WORKERS if name in chosen}

    def refuse_fleet(self, fleet: Fleet) -> None:
        """Refuse a fleet that cannot be this way.

        Raises
        ------
        InputError
            If an option names a worker that the fleet has not, or more slots; or where memory or work of a step is
            not known or too small.
        """
        if self.preempt != "none" and fleet.kv_capacity is None:
            raise InputError(f"detail: preempt={self.preempt} needs a memory that can be full; name kv_capacity")
        if read_gate(self.gate).by_memory and fleet.kv_capacity is None:
            raise InputError(f"detail: gate is {shown(self.gate)}, which goes by memory in use; name kv_capacity")
        for name in _OF_WORKERS:
            for worker, _ in getattr(self, name):
                if not 0 <= worker < fleet.num_workers:
                    raise InputError(
                        f"detail: {name} names worker {worker}; the fleet has workers 0 to {fleet.num_workers - 1}"
                    )
        for worker, slots in self.slots:
            if not 1 <= slots <= fleet.slots_per_worker:
                raise InputError(
                    f"detail: worker {worker} is given {slots} slots; expected 1 to {fleet.slots_per_worker} (--slots)"
                )
        least = fleet.slots_per_worker * (1 + self.draft)
        if 0 < self.prefill < least:
            raise InputError(
                f"detail: prefill is {self.prefill} tokens a step; expected 0, or at least {least}, what "
                f"{fleet.slots_per_worker} decoding requests need with {self.draft} drafted tokens each"
            )

    def refuse_run(self, trace: Trace, policy: Policy, fleet: Fleet) -> None:
        """Refuse requests or a policy that cannot run this way.

        Raises
        ------
        InputError
            If a request can never fit, the trace says which experts are used, or a policy that binds on arrival knows
            nothing of workers that come and go.
        """
        if trace.experts is not None:
            raise InputError(
                f"trace '{trace.name}' says which experts its requests use, which is counted for workers without "
                "detail only; leave detail out"
            )
        if policy.admission == "immediate" and self.events and not _binds_among_open(policy):
            raise InputError(
                f"policy '{policy.name}' binds requests on arrival and knows nothing of workers that come and go; take "
                "another rule, or leave drain, leave and join out"
            )
        if self.prefix_cache:
            self._refuse_caching(trace)
        if self.preempt == "none":
            return
        assert fleet.kv_capacity is not None
        most = fleet.kv_capacity // self.block
        largest = trace.prompt + trace.output - 1 + self.draft
        i = int(largest.argmax())
        if -(-int(largest[i]) // self.block) > most:
            raise InputError(
                f"request {i} of trace '{trace.name}' holds {int(largest[i])} tokens at its end, and a worker has "
                f"{most} blocks of {self.block}; expected a kv_capacity of at least "
                f"{-(-int(largest[i]) // self.block) * self.block}"
            )

    def _refuse_caching(self, trace: Trace) -> None:
        if trace.prefixes is None:
            raise InputError(
                f"trace '{trace.name}' does not tell the blocks that its prompts share, so prefix_cache finds nothing; "
                "take a trace with hash_ids, such as Mooncake's, or leave prefix_cache out"
            )
        if self.prefix_cache < trace.prefixes.block_tokens:
            raise InputError(
                f"detail: prefix_cache is {self.prefix_cache} tokens; expected at least {trace.prefixes.block_tokens}, "
                f"a block of trace '{trace.name}'"
            )


def _binds_among_open(policy: Policy) -> bool:
    from lbopt.kernels.routing.codes import BAND

    return isinstance(policy, CompiledPolicy) and policy.code != BAND


def _pairs(mark: str, example: str, read: Callable[[str, str], Any]) -> Callable[[str, str], tuple[Any, ...]]:
    """Return what reads pairs of worker and value that an option lists."""

    def pairs(what: str, text: str) -> tuple[tuple[int, Any], ...]:
        found = []
        for part in filter(None, text.split("+")):
            worker, marked, value = part.partition(mark)
            if not marked or not worker.isdecimal():
                raise InputError(f"{what} has {shown(part)}; expected WORKER{mark}VALUE such as {example}")
            found.append((int(worker), read(f"{what} of worker {int(worker)}", value)))
        return tuple(found)

    return pairs


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} is {shown(text)}; expected a number") from None


def _count(what: str, text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"{what} is {shown(text)}; expected a whole number")
    return int(text)


#: How options are read whose values are durations, or lists of workers.
_READ: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(_DURATIONS, duration),
    **dict.fromkeys(("drain", "leave", "join"), _pairs("@", "5@100s", duration)),
    "slow": _pairs(":", "3:1.5+7:1.2", _number),
    "slots": _pairs(":", "2:36", _count),
}


def make_detail(text: str) -> Detail:
    """Read ``preempt=recompute,draft=2,slow=3:1.5+7:1.2,leave=5@100s``; what is left out is the default.

    Raises
    ------
    InputError
        If an option or a value is unknown.

    Examples
    --------
    >>> from lbopt.simulator import make_detail
    >>> make_detail("slow=3:1.5,leave=5@2min").leave
    ((5, 120.0),)
    """
    return Detail(**options_of("setting", "detail", text, Detail, read=_READ))
