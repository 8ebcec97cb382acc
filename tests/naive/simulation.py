"""The simulation in both event orders.

`paper` follows the authors' simulator (reference_conventions.json, "step_order"): loads and imbalance are read after
growth and completions, before the next admission. `theory` follows bf_io.md section 1, "Order of events": growth,
completions, admission, then reading. The two loops below are written apart (lists of active requests here, a matrix
of slots there) and share only what happens inside one decision.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from naive.rules import HELD, bind, place
from naive.sight import Sight, Telemetry

PooledRule = Callable[[list[int], list[int], list[int], list[int]], list[int]]

EMPTY = -1


@dataclass
class Setting:
    """What is given: the trace, the workers, the rule, the way requests are revealed."""

    prompt: list[int]
    output: list[int]
    num_workers: int
    slots: int
    rule: str | PooledRule
    admission: str
    arrival: list[float] | None
    reveal_target: int | None
    options: dict[str, Any]
    uniforms: list[tuple[float, float]] | None
    sight: Sight | None = None  # None: rules see the truth
    eligible: list[frozenset[int]] | None = None  # of each request; None: all workers serve all

    def kind(self, request: int) -> frozenset[int]:
        """The workers that serve the request; requests with the same ones are of one kind."""
        return frozenset(range(self.num_workers)) if self.eligible is None else self.eligible[request]


@dataclass
class Waiting:
    """What the router holds between decisions."""

    undiscovered: int = 0  # first request that is not yet revealed; the trace is revealed in file order
    pool: list[int] = field(default_factory=list)  # pooled form; immediate form: those that the rule holds back
    queues: list[list[int]] = field(default_factory=list)  # immediate form: one FIFO queue per worker
    counter: int = 0  # round robin, where it begins
    counters: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)  # by front end and kind of requests


@dataclass
class Trajectory:
    """What happened: one entry per request, and one entry per step (row k - 1 is step k)."""

    event_order: str
    prompt: list[int]
    output: list[int]
    worker: list[int]
    reveal_step: list[int]
    reveal_clock: list[float]
    start_step: list[int]
    start_clock: list[float]
    finish_step: list[int]
    finish_clock: list[float]
    barrier_loads: list[list[int]]  # before growth; they make the duration
    post_loads: list[list[int]]  # after growth and completions, before admission
    read_loads: list[list[int]]  # what imbalance, spread, idle share and power are computed from
    active: list[int]
    duration: list[float]
    clock: list[float]  # at the end of the step


# ---------------------------------------------------------------------------------------------------------------------
# one decision


def something_waits(waiting: Waiting) -> bool:
    """Is any revealed request not yet started?"""
    return len(waiting.pool) + number_queued(waiting) > 0


def number_queued(waiting: Waiting) -> int:
    """All requests in the queues of the workers."""
    total = 0
    for queue in waiting.queues:
        total += len(queue)
    return total


def reveal(setting: Setting, waiting: Waiting, record: Trajectory, step: int, clock: float) -> list[int]:
    """Revelation, in file order; returns the newly revealed requests (bf_io.md section 6, "Environment").

    With arrival times: everything with arrival <= clock. Closed loop, pooled: until the pool holds `reveal_target`.
    Closed loop, immediate: max(0, reveal_target - number queued or held back) requests.
    """
    revealed: list[int] = []
    before = len(waiting.pool) + number_queued(waiting)
    while waiting.undiscovered < len(setting.prompt):
        request = waiting.undiscovered
        if setting.arrival is not None:
            if setting.arrival[request] > clock:
                break
        else:
            assert setting.reveal_target is not None
            if before + len(revealed) >= setting.reveal_target:
                break
        revealed.append(request)
        waiting.undiscovered += 1
        record.reveal_step[request] = step
        record.reveal_clock[request] = clock if setting.arrival is None else setting.arrival[request]
    return revealed


def decide_pooled(
    setting: Setting,
    waiting: Waiting,
    record: Trajectory,
    step: int,
    clock: float,
    loads: Sequence[int],
    running: Sequence[int],
) -> list[tuple[int, int]]:
    """One call of the rule on the pool; returns (request, worker) of those that start, which leave the pool."""
    sight = setting.sight
    if sight is not None:
        sight.report(clock, [(load, count, 0, 0) for load, count in zip(loads, running, strict=True)])
    starts: list[tuple[int, int]] = []
    for kind in dict.fromkeys(setting.kind(request) for request in waiting.pool):
        now = [load + sum(setting.prompt[i] for i, w in starts if w == g) for g, load in enumerate(loads)]
        counts = [count + sum(w == g for _, w in starts) for g, count in enumerate(running)]
        starts += decide_kind(setting, waiting, record, step, kind, now, counts)
    return starts


def decide_kind(
    setting: Setting,
    waiting: Waiting,
    record: Trajectory,
    step: int,
    kind: frozenset[int],
    loads: Sequence[int],
    running: Sequence[int],
) -> list[tuple[int, int]]:
    """The same for the requests that the workers `kind` serve: to them all others are full."""
    sight = setting.sight
    if sight is not None:
        if sum(seen.running for seen in sight.seen[0]) == setting.num_workers * setting.slots:
            return []
        loads = [seen.load for seen in sight.seen[0]]
        running = [seen.running for seen in sight.seen[0]]
    free = [(setting.slots - count) * (worker in kind) for worker, count in enumerate(running)]
    if sum(free) == 0 and setting.eligible is not None:
        return []
    pool = [request for request in waiting.pool if setting.kind(request) == kind]
    sizes = [setting.prompt[request] for request in pool]
    waited = [step - record.reveal_step[request] for request in pool]
    if isinstance(setting.rule, str):
        uniforms = None
        if setting.uniforms is not None:
            uniforms = [setting.uniforms[request] for request in pool]
        turn = waiting.counters.get((0, kind), waiting.counter)
        placement, waiting.counters[0, kind] = place(
            setting.rule, list(loads), free, sizes, waited, list(running), uniforms, turn, setting.options
        )
    else:
        placement = setting.rule(list(loads), free, sizes, waited)
    starts: list[tuple[int, int]] = []
    for request, worker in zip(pool, placement, strict=True):
        if worker >= 0:
            free[worker] -= 1
            if free[worker] < 0:
                raise RuntimeError("the rule overfilled a worker")
            if sight is not None:
                sight.sent(0, worker, setting.prompt[request])
            waiting.pool.remove(request)
            starts.append((request, worker))
    return starts


def decide_immediate(
    setting: Setting,
    waiting: Waiting,
    clock: float,
    loads: Sequence[int],
    running: Sequence[int],
) -> list[tuple[int, int]]:
    """First the queues are drained into free slots, then those without a worker are bound, oldest first.

    Where the rule holds one of them back, it and all younger ones of its kind wait for the next decision.
    """
    starts: list[tuple[int, int]] = []
    current = list(loads)
    counts = list(running)
    for worker in range(setting.num_workers):
        while waiting.queues[worker] and counts[worker] < setting.slots:
            request = waiting.queues[worker].pop(0)
            starts.append((request, worker))
            counts[worker] += 1
            current[worker] += setting.prompt[request]
    sight = setting.sight
    if sight is not None:
        in_queues = [sum(setting.prompt[request] for request in queue) for queue in waiting.queues]
        lengths = [len(queue) for queue in waiting.queues]
        sight.report(clock, list(zip(current, counts, lengths, in_queues, strict=True)))
    held: set[frozenset[int]] = set()
    for request in list(waiting.pool):
        kind = setting.kind(request)
        if kind in held:
            continue
        queued = [len(queue) for queue in waiting.queues]
        tokens = list(current)
        for worker in range(setting.num_workers):
            for other in waiting.queues[worker]:
                tokens[worker] += setting.prompt[other]
        shown, front_end = counts, 0
        if sight is not None:
            front_end = request % len(sight.seen)
            seen = sight.seen[front_end]
            shown, queued = [one.running for one in seen], [one.queued for one in seen]
            tokens = [one.load + one.queued_tokens for one in seen]
        uniforms = None if setting.uniforms is None else setting.uniforms[request]
        if not isinstance(setting.rule, str):
            raise ValueError("the immediate form takes the name of a rule")
        among = sorted(kind)
        place_among, waiting.counters[front_end, kind] = bind(
            setting.rule,
            [shown[worker] for worker in among],
            [queued[worker] for worker in among],
            [tokens[worker] for worker in among],
            uniforms,
            waiting.counters.get((front_end, kind), waiting.counter),
            setting.prompt[request],
            setting.slots,
            setting.options,
        )
        if place_among == HELD:
            held.add(kind)
            continue
        worker = among[place_among]
        waiting.pool.remove(request)
        if sight is not None:
            sight.sent(front_end, worker, setting.prompt[request])
        if counts[worker] < setting.slots:
            starts.append((request, worker))
            counts[worker] += 1
            current[worker] += setting.prompt[request]
        else:
            waiting.queues[worker].append(request)
    return starts


def decision(
    setting: Setting,
    waiting: Waiting,
    record: Trajectory,
    step: int,
    clock: float,
    loads: Sequence[int],
    running: Sequence[int],
) -> tuple[list[tuple[int, int]], float]:
    """Decision `step`: revelation, then admission; returns the (request, worker) that start, and the clock.

    With arrival times, if nothing is active and nothing waits, the clock jumps to the next arrival first.
    """
    if (
        setting.arrival is not None
        and sum(running) == 0
        and not something_waits(waiting)
        and waiting.undiscovered < len(setting.prompt)
        and setting.arrival[waiting.undiscovered] > clock
    ):
        clock = setting.arrival[waiting.undiscovered]
    revealed = reveal(setting, waiting, record, step, clock)
    waiting.pool.extend(revealed)
    if setting.admission == "pooled":
        starts = decide_pooled(setting, waiting, record, step, clock, loads, running)
    else:
        starts = decide_immediate(setting, waiting, clock, loads, running)
    for request, worker in starts:
        record.worker[request] = worker
        record.start_step[request] = step
        record.start_clock[request] = clock
    sight = setting.sight
    if sum(running) == 0 and not starts and waiting.pool and sight is not None:
        awaited = [] if sight.looks_empty() else [min(sight.due)]
        if setting.arrival is not None and waiting.undiscovered < len(setting.prompt):
            awaited.append(setting.arrival[waiting.undiscovered])
        if awaited:  # nobody runs, and the router does not know: the next news comes without a step
            return decision(setting, waiting, record, step, max(clock, min(awaited)), loads, running)
    unfinished = something_waits(waiting) or waiting.undiscovered < len(setting.prompt)
    if sum(running) == 0 and not starts and unfinished:
        raise RuntimeError(f"decision {step}: nothing is active, and nothing was admitted")
    return starts, clock


# ---------------------------------------------------------------------------------------------------------------------
# the two loops


def simulate_paper(
    setting: Setting, waiting: Waiting, record: Trajectory, fixed_seconds: float, seconds_per_token: float
) -> None:
    """The authors' order (reference_conventions.json, "step_order"), with lists of active requests."""
    active: list[list[int]] = [[] for _ in range(setting.num_workers)]
    generated = [0] * len(setting.prompt)

    def loads_now() -> list[int]:
        loads = []
        for worker in range(setting.num_workers):
            load = 0
            for request in active[worker]:
                load += setting.prompt[request] + generated[request]
            loads.append(load)
        return loads

    def running_now() -> list[int]:
        return [len(requests) for requests in active]

    step = 0
    clock = 0.0
    finished = 0
    starts, clock = decision(setting, waiting, record, step, clock, loads_now(), running_now())
    for request, worker in starts:
        active[worker].append(request)
    while finished < len(setting.prompt):
        step += 1
        barrier = loads_now()
        duration = fixed_seconds + seconds_per_token * max(barrier)
        clock += duration
        record.barrier_loads.append(barrier)
        record.active.append(sum(running_now()))
        record.duration.append(duration)
        record.clock.append(clock)
        for worker in range(setting.num_workers):
            still_active = []
            for request in active[worker]:
                generated[request] += 1
                if generated[request] >= setting.output[request]:
                    record.finish_step[request] = step
                    record.finish_clock[request] = clock
                    finished += 1
                else:
                    still_active.append(request)
            active[worker] = still_active
        post = loads_now()
        record.post_loads.append(post)
        record.read_loads.append(post)
        if something_waits(waiting) or waiting.undiscovered < len(setting.prompt):
            starts, clock = decision(setting, waiting, record, step, clock, post, running_now())
            for request, worker in starts:
                active[worker].append(request)


def simulate_theory(
    setting: Setting, waiting: Waiting, record: Trajectory, fixed_seconds: float, seconds_per_token: float
) -> None:
    """The theory's order (bf_io.md section 1, "Order of events"), on sizes a[g][b] in a matrix of slots.

    Growth, completion, admission, and only then the loads are read: snapshot j shows what is resident after the
    admission of decision j - 1, that is, what stands at the barrier of step j.
    """
    workers = range(setting.num_workers)
    slots = range(setting.slots)
    who = [[EMPTY for _ in slots] for _ in workers]
    size = [[0 for _ in slots] for _ in workers]
    remaining = [[0 for _ in slots] for _ in workers]

    def read() -> list[int]:
        return [sum(size[worker]) for worker in workers]

    def occupied() -> list[int]:
        counts = []
        for worker in workers:
            count = 0
            for slot in slots:
                if who[worker][slot] != EMPTY:
                    count += 1
            counts.append(count)
        return counts

    def admit(step: int, clock: float) -> float:
        starts, clock = decision(setting, waiting, record, step, clock, read(), occupied())
        for request, worker in starts:
            for slot in slots:
                if who[worker][slot] == EMPTY:
                    who[worker][slot] = request
                    size[worker][slot] = setting.prompt[request]
                    remaining[worker][slot] = setting.output[request]
                    break
            else:
                raise RuntimeError("no free slot on the chosen worker")
        return clock

    step = 0
    clock = admit(0, 0.0)
    snapshot = read()
    in_use = sum(occupied())
    while in_use > 0:
        record.read_loads.append(snapshot)
        record.barrier_loads.append(snapshot)
        record.active.append(in_use)
        record.duration.append(fixed_seconds + seconds_per_token * max(snapshot))
        clock += record.duration[-1]
        record.clock.append(clock)
        step += 1
        for worker in workers:  # growth
            for slot in slots:
                if who[worker][slot] != EMPTY:
                    size[worker][slot] += 1
                    remaining[worker][slot] -= 1
        for worker in workers:  # completion: the request leaves with its whole, grown size
            for slot in slots:
                if who[worker][slot] != EMPTY and remaining[worker][slot] == 0:
                    record.finish_step[who[worker][slot]] = step
                    record.finish_clock[who[worker][slot]] = clock
                    who[worker][slot] = EMPTY
                    size[worker][slot] = 0
        record.post_loads.append(read())
        clock = admit(step, clock)
        snapshot = read()
        in_use = sum(occupied())


def simulate(
    prompt: Sequence[int],
    output: Sequence[int],
    num_workers: int,
    slots: int,
    rule: str | PooledRule,
    admission: str = "pooled",
    arrival: Sequence[float] | None = None,
    reveal_target: int | None = None,
    *,
    fixed_seconds: float,
    seconds_per_token: float,
    event_order: str = "paper",
    options: Mapping[str, Any] | None = None,
    uniforms: Sequence[tuple[float, float]] | None = None,
    counter: int = 0,
    telemetry: Telemetry | None = None,
    eligible: Sequence[frozenset[int]] | None = None,
) -> Trajectory:
    """Run the whole trace (bf_io.md section 6, "Environment"; reference_conventions.json, "step_order").

    `rule` is a name of `rules.POOLED_RULES` or `rules.IMMEDIATE_RULES` with its `options`, or, in the pooled form, a
    function of (loads, slots, sizes, waiting). `admission` is "pooled" or "immediate". Give either `arrival` (not
    decreasing) or `reveal_target`. `uniforms[i]` belongs to request i of the trace. Without
    `telemetry` rules see the truth. `eligible[i]` are the workers that serve request i; None: all serve all.
    """
    total = len(prompt)
    if len(output) != total or total == 0 or min(output) < 1:
        raise ValueError("every request needs a prompt and at least one decode step")
    if (arrival is None) == (reveal_target is None):
        raise ValueError("give either arrival times or a reveal target")
    if arrival is not None and (len(arrival) != total or list(arrival) != sorted(arrival)):
        raise ValueError("arrival times must not decrease")
    if admission not in ("pooled", "immediate"):
        raise ValueError(f"unknown admission {admission!r}")
    setting = Setting(
        list(prompt),
        list(output),
        num_workers,
        slots,
        rule,
        admission,
        None if arrival is None else list(arrival),
        reveal_target,
        dict(options or {}),
        None if uniforms is None else list(uniforms),
        None if telemetry is None else Sight.of(telemetry, num_workers, slots),
        None if eligible is None else list(eligible),
    )
    waiting = Waiting(queues=[[] for _ in range(num_workers)], counter=counter)
    record = Trajectory(
        event_order=event_order,
        prompt=list(prompt),
        output=list(output),
        worker=[-1] * total,
        reveal_step=[-1] * total,
        reveal_clock=[0.0] * total,
        start_step=[-1] * total,
        start_clock=[0.0] * total,
        finish_step=[-1] * total,
        finish_clock=[0.0] * total,
        barrier_loads=[],
        post_loads=[],
        read_loads=[],
        active=[],
        duration=[],
        clock=[],
    )
    if event_order == "paper":
        simulate_paper(setting, waiting, record, fixed_seconds, seconds_per_token)
    elif event_order == "theory":
        simulate_theory(setting, waiting, record, fixed_seconds, seconds_per_token)
    else:
        raise ValueError(f"unknown event order {event_order!r}")
    return record
