"""Workers in detail, by the words of the manual (docs/detail.md), with objects and sums taken anew.

Rules and stale sight are those of `naive.rules` and `naive.sight`.
"""

import math
from collections import Counter

from naive import gates
from naive.detail_state import JOIN, LEAVE, Case, Options, Request, StuckError, Worker
from naive.pausing import Counted, Plan, balance
from naive.rules import HELD, bind, place


def blocks_of(request: Request, options: Options) -> int:
    """A request that runs occupies ceil((s + e + draft) / block) blocks."""
    return math.ceil((request.size + options.draft) / options.block)


def paused_of(worker: Worker) -> list[Request]:
    """The paused requests, which are in the queue."""
    return [request for request in worker.queue if request.is_paused]


def blocks_in_use(worker: Worker, options: Options) -> int:
    """Those of the running and the paused requests; any other occupies none."""
    return sum(blocks_of(request, options) for request in worker.running + paused_of(worker))


def blocks_committed(worker: Worker, options: Options) -> int:
    """Those in use, and those that the others of the queue will occupy."""
    others = [request for request in worker.queue if not request.is_paused]
    return blocks_in_use(worker, options) + sum(blocks_of(request, options) for request in others)


def committed_seen(front_end: int, case: Case) -> list[int]:
    """The blocks committed on each worker, as a front end sees them."""
    if case.sight is None:
        return [blocks_committed(worker, case.options) for worker in case.workers]
    return [seen.committed for seen in case.sight.seen[front_end]]


def workers_come_and_go(case: Case) -> None:
    """Item 1 of a decision."""
    back = []
    while case.options.events and case.options.events[0][0] <= case.clock:
        _, number, kind = case.options.events.pop(0)
        worker = case.workers[number]
        worker.is_open = kind == JOIN
        if kind == LEAVE:
            back += worker.running + worker.queue
            worker.running, worker.queue, worker.moved, worker.cache = [], [], 0, []
    for request in back:
        request.computed, request.is_swapped, request.is_paused, request.worker = 0, False, False, -1
        case.returned += 1
    case.pool = sorted(back, key=lambda request: request.number) + case.pool


def give_up_memory(request: Request, worker: Worker, case: Case) -> None:
    """A request is pre-empted: what was computed is moved out, or computed no more."""
    case.preemptions += 1
    request.is_paused = False
    if case.options.preempt == "swap":
        request.is_swapped = True
        worker.moved += request.computed
        case.moved += request.computed
    else:
        request.computed = 0


def memory_is_made_to_fit(case: Case) -> None:
    """Item 2 of a decision."""
    for worker in case.workers:
        if case.options.preempt == "none":
            continue
        while blocks_in_use(worker, case.options) > case.options.capacity // case.options.block:
            if worker.running:
                worker.queue.insert(0, worker.running.pop())
                give_up_memory(worker.queue[0], worker, case)
            else:
                give_up_memory(paused_of(worker)[-1], worker, case)


def requests_become_known(case: Case) -> None:
    """Item 3 of a decision: by arrival, or until `reveal_target` of them wait."""
    waiting = len(case.pool) + sum(len(worker.queue) for worker in case.workers)
    for request in case.requests[case.known :]:
        if case.reveal_target is None:
            assert request.arrival is not None
            if request.arrival > case.clock:
                break
            request.reveal_clock = request.arrival
        else:
            if waiting >= case.reveal_target:
                break
            request.reveal_clock = case.clock
        request.reveal_step = case.step
        case.pool.append(request)
        case.known += 1
        waiting += 1


def fits(request: Request, worker: Worker, case: Case) -> bool:
    """Item 4 of a decision, (a) and (b)."""
    if request.arrives > case.clock:
        return False
    if case.options.preempt == "none" or request.is_paused:
        return True
    total = case.options.capacity // case.options.block
    together = blocks_in_use(worker, case.options) + blocks_of(request, case.options)
    return together <= total - (math.floor(case.options.watermark * total) if worker.running else 0)


def start(request: Request, worker: Worker, case: Case) -> None:
    """A request of the queue joins the end of the list."""
    worker.queue.remove(request)
    if case.options.prefix_cache:
        use_cache(request, worker, case)
    worker.running.append(request)
    if request.is_swapped:
        worker.moved += request.computed
        case.moved += request.computed
    request.is_swapped = request.is_paused = False
    if request.start_step < 0:
        request.start_step, request.start_clock = case.step, case.clock


def tokens_found(request: Request, worker: Worker, case: Case) -> int:
    """Tokens of the longest head of the request's blocks that the worker holds."""
    count = 0
    while count < len(request.blocks) and request.blocks[count] in worker.cache:
        count += 1
    return count * case.block_tokens


def use_cache(request: Request, worker: Worker, case: Case) -> None:
    """A request that starts takes over what is held; then its blocks are used, the first one last."""
    found = min(tokens_found(request, worker, case), request.size - 1)
    if not (request.is_swapped or request.is_paused) and found > request.computed:
        case.reused += found - request.computed
        request.computed = found
        request.once_computed = max(request.once_computed, found)
    used = list(reversed(request.blocks))
    worker.cache = [block for block in worker.cache if block not in used] + used
    worker.cache = worker.cache[-(case.options.prefix_cache // case.block_tokens) :]


def lacks(request: Request, worker: Worker, case: Case) -> int:
    """Tokens that a waiting request would have to compute if it started now."""
    found = 0
    if case.options.prefix_cache and not (request.is_swapped or request.is_paused):
        found = min(tokens_found(request, worker, case), request.size - 1)
    return request.size - max(request.computed, found)


def let_in(worker: Worker, case: Case) -> None:
    """Item 4 of a decision, for one worker."""
    if case.plan is not None or case.is_shut:
        return
    while len(worker.running) < worker.slots and worker.queue and worker.queue[0].arrives <= case.clock:
        missing = lacks(worker.queue[0], worker, case)
        if case.gate is not None and worker.room <= 0 and missing > isinstance(case.gate, gates.Vllm):
            return
        while not worker.running and not fits(worker.queue[0], worker, case):
            give_up_memory(paused_of(worker)[-1], worker, case)
        if not fits(worker.queue[0], worker, case):
            return
        worker.room -= missing or 1 + case.options.draft
        start(worker.queue[0], worker, case)


def let_in_by_the_gate(case: Case) -> None:
    """Item 6 of a decision, where a gate decides."""
    assert case.gate is not None
    options, ranks = case.options, []
    for worker in case.workers:
        begun = [request for request in worker.running if request.computed < request.size]
        missing = sum(request.size - request.computed for request in begun)
        head = worker.queue[0] if worker.queue else None
        worker.room = options.prefill - (1 + options.draft) * (len(worker.running) - len(begun)) - missing
        blocks = options.capacity // options.block
        ranks.append(
            gates.Rank(
                present=worker.is_open or bool(worker.running or worker.queue),
                decoding=len(worker.running) - len(begun),
                begun=len(begun),
                can_begin=head is not None
                and len(worker.running) < worker.slots
                and lacks(head, worker, case) > 0
                and fits(head, worker, case),
                waiting=len(worker.queue),
                pending=min(options.prefill, missing + sum(other.size - other.computed for other in worker.queue)),
                most=worker.most,
                left_over=worker.left_over,
                usage=worker.load / options.capacity
                if options.preempt == "none"
                else blocks_in_use(worker, options) / blocks,
                age=0.0 if head is None else case.clock - head.reveal_clock,
            )
        )
    idle = not any(worker.running for worker in case.workers)
    slots = min(worker.slots for worker in case.workers)
    for worker, (begins, goes_on) in zip(
        case.workers, case.gate.judge(ranks, case.clock, idle, slots, options.prefill), strict=True
    ):
        worker.room, worker.stops = worker.room if begins else 0, not goes_on
    case.is_shut = False
    for worker in case.workers:
        let_in(worker, case)
        if not worker.stops:
            worker.most = max(worker.most, sum(request.computed < request.size for request in worker.running))
            worker.left_over = bool(worker.queue)
    case.is_shut = True


def send(request: Request, worker: Worker, front_end: int, case: Case) -> None:
    """A request joins the end of the worker's queue; an optimistic front end notes it."""
    request.worker = worker.number
    request.arrives = case.clock + case.options.transfer
    worker.queue.append(request)
    case.long_was_sent |= math.ceil(request.size / case.options.block) > case.options.pause_long
    sight = case.sight
    if sight is not None and sight.telemetry.own == "optimistic":
        seen = sight.seen[front_end][worker.number]
        seen.committed += blocks_of(request, case.options)
        if seen.running < worker.slots:
            seen.running += 1
            seen.load += request.size
        else:
            seen.queued += 1
            seen.queued_tokens += request.size


def decide_pooled(case: Case) -> None:
    """Item 5 of a decision, for rules that keep a pool."""
    free, loads, running = [], [], []
    for worker in case.workers:
        seen = None if case.sight is None else case.sight.seen[0][worker.number]
        count = len(worker.running) if seen is None else seen.running
        queued = len(worker.queue) if seen is None else seen.queued
        loads.append(worker.load if seen is None else seen.load)
        running.append(count)
        head = worker.queue[0] if worker.queue else None
        is_blocked = head is not None and head.arrives <= case.clock and not head.is_paused
        if not worker.is_open or (is_blocked and (case.gate is None or not fits(worker.queue[0], worker, case))):
            free.append(0)
        else:
            free.append(max(0, worker.slots - count - queued))
    if not case.pool or not any(free):
        return
    case.committed.append(committed_seen(0, case))
    uniforms = None if case.uniforms is None else [case.uniforms[request.number] for request in case.pool]
    placement, case.counter = place(
        case.rule,
        loads,
        free,
        [request.size for request in case.pool],
        [case.step - request.reveal_step for request in case.pool],
        running,
        uniforms,
        case.counter,
        case.rule_options,
    )
    chosen = list(zip(case.pool, placement, strict=True))
    case.pool = [request for request, number in chosen if number < 0]
    for request, number in chosen:
        if number >= 0:
            send(request, case.workers[number], 0, case)


def tokens_to_compute(request: Request, worker: Worker, case: Case) -> int:
    """What running requests lack, the sizes of those in the queue, and of the request what the cache does not hold."""
    lacking = sum(other.size - other.computed for other in worker.running)
    found = tokens_found(request, worker, case) if case.rule_options["cache"] else 0
    return lacking + sum(other.size for other in worker.queue) + max(0, request.size - found)


def decide_on_arrival(case: Case) -> None:
    """Item 5 of a decision, for rules that bind on arrival: among the open workers, as if there were no others."""
    present = [worker for worker in case.workers if worker.is_open]
    while case.pool and present:
        request, front_end = case.pool[0], 0
        counter = case.counter
        running = [len(worker.running) for worker in present]
        queued = [len(worker.queue) for worker in present]
        tokens = [worker.load + worker.queued_tokens for worker in present]
        if case.sight is not None:
            front_end = request.number % len(case.sight.seen)
            seen = [case.sight.seen[front_end][worker.number] for worker in present]
            counter = case.sight.counter[front_end]
            running, queued = [one.running for one in seen], [one.queued for one in seen]
            tokens = [one.load + one.queued_tokens for one in seen]
        if case.options.prefill and case.rule == "tpu_inference":
            scores = [
                (tokens_to_compute(request, worker, case), running[place] + queued[place], place)
                for place, worker in enumerate(present)
            ]
            case.pool.pop(0)
            chosen = present[min(scores)[2]]
            send(request, chosen, front_end, case)
            let_in(chosen, case)
            continue
        case.committed.append(committed_seen(front_end, case))
        number, counter = bind(
            case.rule,
            running,
            queued,
            tokens,
            None if case.uniforms is None else case.uniforms[request.number],
            counter % len(present),
            request.size,
            max(worker.slots for worker in case.workers),
            case.rule_options,
        )
        if number == HELD:
            return
        if case.sight is None:
            case.counter = counter
        else:
            case.sight.counter[front_end] = counter
        case.pool.pop(0)
        send(request, present[number], front_end, case)
        let_in(present[number], case)


def decide(case: Case) -> None:
    """A decision, items 1 to 6."""
    workers_come_and_go(case)
    carry_out(case)
    memory_is_made_to_fit(case)
    requests_become_known(case)
    for worker in case.workers:
        let_in(worker, case)
    if case.sight is not None:
        truth = [
            (w.load, len(w.running), len(w.queue), w.queued_tokens, blocks_committed(w, case.options))
            for w in case.workers
        ]
        case.sight.report(case.clock, truth)
    if case.pooled:
        decide_pooled(case)
    else:
        decide_on_arrival(case)
    if case.gate is not None:
        let_in_by_the_gate(case)
        return
    if not any(worker.running for worker in case.workers):
        case.plan, case.is_shut = None, False
    for worker in case.workers:
        let_in(worker, case)


def next_moment(case: Case) -> float:
    """When something happens although no request runs."""
    moments = [worker.queue[0].arrives for worker in case.workers if worker.queue]
    moments = [moment for moment in moments if moment > case.clock]
    moments += [event[0] for event in case.options.events[:1]]
    if case.reveal_target is None and case.known < len(case.requests):
        arrival = case.requests[case.known].arrival
        assert arrival is not None
        moments.append(arrival)
    if case.pool and case.sight is not None and case.sight.telemetry.period > 0:
        for front_end in case.sight.seen:
            for worker, seen in zip(case.workers, front_end, strict=True):
                if (seen.running, seen.queued) != (len(worker.running), len(worker.queue)):
                    moments.append(min(case.sight.due))
    return min(moments, default=math.inf)


def accepted(request: Request, options: Options) -> int:
    """Of the drafted tokens the first a are accepted: number e + j if all before it are and its draw is below p."""
    chance = options.acceptance + options.spread * (2.0 * options.draw(request.number, 0) - 1.0)
    chance = min(1.0, max(0.0, chance))
    count = 0
    for j in range(1, options.draft + 1):
        if not options.draw(request.number, request.made + j) < chance:
            break
        count += 1
    return count


def compute(request: Request, tokens: int, case: Case) -> None:
    """The request's tokens `computed` + 1, ... are computed, perhaps not for the first time."""
    first = request.computed
    request.computed += tokens
    case.recomputed += max(0, min(request.computed, request.once_computed) - first)
    request.once_computed = max(request.once_computed, request.computed)


def take_step(case: Case) -> None:
    """A step, items 1 to 6."""
    options = case.options
    case.step += 1
    case.blocks.append(
        sum(blocks_in_use(worker, options) for worker in case.workers) if options.preempt != "none" else 0
    )
    loads, own_parts, active, made, in_all, drafted = [], [], 0, 0, 0, False
    ended: list[Request] = []
    first_tokens: list[Request] = []
    for worker in case.workers:
        decoding = [request for request in worker.running if request.computed == request.size]
        left = options.prefill - (1 + options.draft) * len(decoding)
        load = part = computed = 0
        for request in list(worker.running):
            drafts = request in decoding
            if request not in decoding:
                tokens = request.size - request.computed
                if options.prefill:
                    tokens = 0 if worker.stops and tokens > 1 else min(tokens, left)
                    left -= tokens
                else:
                    drafts = True
                compute(request, tokens, case)
                computed += tokens
                if request.computed < request.size:
                    if tokens:
                        part += 1
                        load += request.computed
                    continue
            part += 1
            load += request.size
            drafted = drafted or drafts
            new = 1 + (accepted(request, options) if drafts else 0)
            new = min(new, request.output - request.made)
            if request.made == 0:
                first_tokens.append(request)
            request.made += new
            request.computed = request.once_computed = request.size
            made += new
            if request.made == request.output:
                ended.append(request)
                worker.running.remove(request)
        own = case.per_token * load + computed * options.prefill_cost + worker.moved * options.swap_cost
        worker.moved = 0
        own_parts.append(own * worker.slow)
        loads.append(load)
        active += part
        in_all += computed
    together = options.draft_cost if drafted and options.draft else 0.0
    seconds = case.fixed + max(own_parts) + together
    case.clock += seconds
    for request in first_tokens:
        request.first_token_clock = case.clock
    for request in ended:
        request.finish_step, request.finish_clock = case.step, case.clock
    case.barrier_loads.append(loads)
    if case.gate is not None:
        case.gate.step(in_all, seconds)
    case.is_shut = case.gate is not None or (
        options.gate == "vllm-ascend" and any(len(worker.running) == worker.slots for worker in case.workers)
    )
    case.post_loads.append([worker.load for worker in case.workers])
    case.active.append(active)
    case.made.append(made)
    case.seconds.append(seconds)
    case.clocks.append(case.clock)


def make_plans(case: Case) -> None:
    """Pausing, items 1 to 5."""
    options = case.options
    case.plan = None
    began = False
    if options.pause == "dynamic" and not case.is_balancing:
        began, case.is_balancing, case.long_was_sent = case.long_was_sent, case.long_was_sent, False
        case.quiet_plans = 0
    if options.pause == "none" or case.step < options.pause_from:
        return
    if options.pause == "dynamic" and not case.is_balancing:
        return
    case.plan = []
    for worker in case.workers:
        known: list[Request] = []
        for request in worker.queue[: 2 * worker.slots - len(worker.running)]:
            if request.arrives > case.clock:
                break
            known.append(request)
        runs, waits = (
            [Counted(math.ceil(request.size / options.block)) for request in some] for some in (worker.running, known)
        )
        case.plan.append(Plan(worker.number, runs, waits, known))
    before = [Counter(item.blocks for item in plan.runs) for plan in case.plan]
    balance(case.plan, [worker.slots for worker in case.workers], options.pause_threshold)
    for plan, ran in zip(case.plan, before, strict=True):
        runs_now = Counter(item.blocks for item in plan.runs)
        plan.leave, plan.enter = ran - runs_now, runs_now - ran
    if began or case.long_was_sent:
        case.quiet_plans = 0
    else:
        case.quiet_plans += 1
        if case.quiet_plans >= options.pause_for:
            case.is_balancing = False
    case.long_was_sent = False


def carry_out(case: Case) -> None:
    """Pausing, item 6."""
    for worker, plan in zip(case.workers, case.plan or (), strict=False):
        paused = []
        for request in list(worker.running):
            blocks = math.ceil(request.size / case.options.block)
            if plan.leave[blocks]:
                plan.leave[blocks] -= 1
                worker.running.remove(request)
                request.is_paused = True
                paused.append(request)
                case.pauses += 1
        # their memory is still occupied, also before they are in the queue
        held, worker.queue = worker.queue, worker.queue + paused
        for request in held:
            blocks = math.ceil(request.size / case.options.block)
            if request in plan.known and plan.enter[blocks]:
                plan.enter[blocks] -= 1
                if len(worker.running) == worker.slots or not fits(request, worker, case):
                    break
                start(request, worker, case)
        worker.queue = paused[::-1] + [request for request in worker.queue if request not in paused]


def simulate(case: Case) -> None:
    """Decide, step, decide, step, ... until all have ended; `StuckError` where that never happens."""
    for request in case.requests:
        request.computed = request.once_computed = 0 if case.options.prefill else request.prompt
    case.is_shut = case.gate is not None
    seen: set[int] = set()
    for _, number, kind in case.options.events:
        if number not in seen and kind == JOIN:
            case.workers[number].is_open = False
        seen.add(number)
    while True:
        decide(case)
        while not any(worker.running for worker in case.workers):
            if all(request.finish_step >= 0 for request in case.requests):
                return
            moment = next_moment(case)
            if moment == math.inf:
                raise StuckError(f"decision {case.step}: nothing runs, and nothing will happen")
            case.clock = max(case.clock, moment)
            decide(case)
        take_step(case)
        make_plans(case)
