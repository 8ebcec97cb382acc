"""Queues of workers in detail: who is let in, what is reused and reclaimed, who is pre-empted.

What a worker's cache of prefixes saves a request that starts, and what it leaves to compute for one that may come.

Definition: the manual, page *detail*, "Prefix caches".

A request gives its memory up: where it is pre-empted, or where it was paused and its worker needs the room.

Definition: the manual, page *detail*, "A decision", 2 and 4.

A worker's own queue and its list of running requests, where requests may come back: sent, let in, put at its head.

A request that is sent waits in the queue even where a slot is free; then queues are let in, in order, while the head
fits. Definition: the manual, page *detail*, "A decision", 4 to 6.

Where a worker's memory ran out, the last of its list wait again, at the head of its queue, until what is left fits.

Definition: the manual, page *detail*, "A decision", 2.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.state import NOTHING, PAUSED, SWAPPED, blocks_of, has_room, lose
from lbopt.kernels.gating import VLLM
from lbopt.kernels.pausing import DYNAMIC
from lbopt.kernels.prefix_cache import num_found, use_blocks
from lbopt.kernels.simulation.state import State, join_queue, take_head


@kernel
def reuse(i: int, w: int, state: State) -> None:
    """Let request `i`, which starts on worker `w`, take over what the cache holds of its prompt, and be held itself."""
    detail = state.detail
    rules, track = detail.rules, detail.tracks[i]
    if track.held == NOTHING:
        found = min(num_found(i, w, detail.cache) * rules.cache_block, track.tokens - 1)
        if found > track.computed:
            saved = found - track.computed
            track.computed = found
            track.lost -= min(track.lost, saved)
            detail.tally.reused += saved
    use_blocks(i, w, rules.cache_blocks, detail.cache)


@kernel
def lacking(i: int, w: int, state: State) -> int:
    """Return the tokens that request `i`, which waits on worker `w`, would have to compute if it started now."""
    detail = state.detail
    track, computed = detail.tracks[i], detail.tracks[i].computed
    if detail.rules.cache_blocks > 0 and track.held == NOTHING:
        computed = max(computed, min(num_found(i, w, detail.cache) * detail.rules.cache_block, track.tokens - 1))
    return int(track.tokens - computed)


@kernel
def count_to_compute(i: int, by_cache: bool, workers: Ints, state: State) -> Ints:
    """Return the tokens that each worker would compute before the first token of request `i`.

    They are what its running requests lack, the sizes of those in its queue, and what its cache does not hold of the
    request.

    Parameters
    ----------
    by_cache
        Whether what the cache holds, if there is one, counts as computed.
    workers
        int64 (n,), the workers to tell of.
    state
        Of the run; the answer is a part of its scratch arrays.
    """
    detail = state.detail
    answer = detail.cache.to_compute[: workers.size]
    for place in range(workers.size):
        w = workers[place]
        tokens = state.queued_tokens[w]
        for seat in range(state.running[w]):
            track = detail.tracks[detail.seats[w, seat]]
            tokens += track.tokens - track.computed
        own = detail.size[i]
        if by_cache and detail.rules.cache_blocks > 0:
            own -= min(num_found(i, w, detail.cache) * detail.rules.cache_block, own)
        answer[place] = tokens + own
    return answer


@kernel
def give_up_memory(i: int, w: int, state: State) -> None:
    """Free the blocks of request `i` on worker `w`: what was computed is moved out, or lost."""
    detail = state.detail
    track = detail.tracks[i]
    detail.used[w] -= track.blocks
    track.blocks = 0
    detail.tally.preemptions += 1
    if detail.rules.swaps == 1:
        track.held = SWAPPED
        detail.moved[w] += track.computed
        detail.tally.moved += track.computed
    else:
        lose(track)


@kernel
def reclaim_last(w: int, state: State) -> bool:
    """Free the blocks of the last paused request in worker `w`'s queue; returns whether there was one."""
    last, i = -1, state.queue_head[w]
    for _ in range(state.queued[w]):
        if state.detail.tracks[i].held == PAUSED:
            last = i
        i = state.next_in_queue[i]
    if last >= 0:
        give_up_memory(last, w, state)
    return bool(last >= 0)


@kernel
def join_queue_of(i: int, w: int, state: State) -> None:
    """Put request `i`, which the router sends to worker `w` now, at the end of the worker's queue."""
    detail = state.detail
    detail.ready[i] = state.progress.clock + detail.rules.transfer
    terms = detail.pausing.terms
    if terms.mode == DYNAMIC and state.size[i] > terms.long_blocks * detail.rules.block:
        terms.long_came = 1
    join_queue(i, w, state)


@kernel
def put_at_head(i: int, w: int, state: State) -> None:
    """Put request `i` at the head of worker `w`'s queue: it was pre-empted there."""
    state.next_in_queue[i] = state.queue_head[w] if state.queued[w] > 0 else -1
    if state.queued[w] == 0:
        state.queue_tail[w] = i
    state.queue_head[w] = i
    state.queued[w] += 1
    state.queued_tokens[w] += state.detail.size[i]
    state.progress.queued += 1


@kernel
def take_seat(i: int, w: int, state: State) -> None:
    """Let request `i` run at the end of worker `w`'s list."""
    detail, progress = state.detail, state.progress
    if detail.rules.cache_blocks > 0:
        reuse(i, w, state)
    detail.seats[w, state.running[w]] = i
    state.running[w] += 1
    track = detail.tracks[i]
    state.load[w] += track.tokens
    progress.active += 1
    progress.admitted += 1
    if detail.rules.blocks >= 0:
        detail.used[w] -= track.blocks  # a paused one has them
        track.blocks = blocks_of(track.tokens, detail.rules)
        detail.used[w] += track.blocks
    if track.held == SWAPPED:
        detail.moved[w] += track.computed
        detail.tally.moved += track.computed
    track.held = NOTHING
    if state.start_step[i] < 0:
        state.start_step[i] = progress.step
        state.start_clock[i] = progress.clock


@kernel
def has_arrived(w: int, state: State) -> bool:
    """Return whether worker `w`'s queue has a head whose memory is there."""
    return bool(state.queued[w] > 0 and state.detail.ready[state.queue_head[w]] <= state.progress.clock)


@kernel
def let_in(state: State) -> None:
    """Let the heads of all queues run while there are slots and they fit, where that is allowed."""
    if state.progress.queued == 0:
        return
    for w in range(state.queued.size):
        let_in_at(w, state)


@kernel
def let_in_at(w: int, state: State) -> None:
    """Let the heads of worker `w`'s queue run while there are slots and they fit.

    None is let in where a plan of pausing is in force, or a gate is shut. A gate leaves prompts in the queue where it
    has no room for them.
    """
    detail = state.detail
    if detail.pausing.terms.in_force == 1 or detail.gate.terms.shut == 1:
        return
    code, lacks = detail.gate.terms.code, 0
    while state.running[w] < state.slots[w] and has_arrived(w, state):
        if code >= VLLM:
            lacks = lacking(state.queue_head[w], w, state)
            if lacks > (1 if code == VLLM else 0) and detail.gate.ranks[w].room <= 0:
                return
        while not has_room(state.queue_head[w], w, state.running[w], detail):
            if state.running[w] > 0 or not reclaim_last(w, state):
                return
        take_seat(take_head(w, state), w, state)
        if code >= VLLM:
            rank = detail.gate.ranks[w]
            rank.room -= lacks if lacks > 0 else 1 + detail.rules.draft
            rank.begun += 1 if lacks > 0 else 0


@kernel
def see_free_slots(state: State) -> None:
    """Write the slots that a pooled rule sees free into `State.free`."""
    detail, sight, f = state.detail, state.sight, 0  # a pool has one front end
    for w in range(state.free.size):
        free = 0
        if detail.is_open[w] == 1 and not _is_blocked(w, state):
            free = max(0, state.slots[w] - sight.running[f, w] - sight.queued[f, w])
        state.free[w] = free


@kernel
def _is_blocked(w: int, state: State) -> bool:
    """Return whether worker `w`'s queue has a head whose memory is there and that nothing but the worker holds up."""
    i, detail = state.queue_head[w], state.detail
    if not has_arrived(w, state) or detail.tracks[i].held == PAUSED:
        return False
    return detail.gate.terms.code < VLLM or not has_room(i, w, state.running[w], detail)


@kernel
def count_committed(state: State) -> None:
    """Write the blocks of each worker that are occupied, or that its queue needs, into `Detail.committed`."""
    detail = state.detail
    for w in range(detail.committed.size):
        blocks, i = detail.used[w], state.queue_head[w]
        for _ in range(state.queued[w]):
            if detail.tracks[i].held != PAUSED:  # a paused one occupies them already
                blocks += blocks_of(detail.size[i], detail.rules)
            i = state.next_in_queue[i]
        detail.committed[w] = blocks


@kernel
def make_fit(state: State) -> None:
    """Pre-empt on every worker until its memory suffices."""
    detail = state.detail
    blocks = detail.rules.blocks
    if blocks < 0:
        return
    for w in range(detail.used.size):
        while detail.used[w] > blocks:
            if state.running[w] > 0:
                _preempt_last(w, state)
            else:
                reclaim_last(w, state)


@kernel
def _preempt_last(w: int, state: State) -> None:
    """Let the last of worker `w`'s list wait again."""
    state.running[w] -= 1
    i = state.detail.seats[w, state.running[w]]
    tokens = state.detail.tracks[i].tokens
    state.detail.size[i] = tokens
    state.load[w] -= tokens
    state.progress.active -= 1
    give_up_memory(i, w, state)
    put_at_head(i, w, state)
