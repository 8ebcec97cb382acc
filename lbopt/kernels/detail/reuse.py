"""What a worker's cache of prefixes saves a request that starts, and what it leaves to compute for one that may come.

Definition: the manual, page *detail*, "Prefix caches".
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.state import NOTHING
from lbopt.kernels.prefix_cache.lru import num_found, use_blocks
from lbopt.kernels.simulation.state import State


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
def count_to_compute(i: int, by_cache: bool, workers: Ints, state: State) -> Ints:
    """Return the tokens that each worker would compute before the first token of request `i`.

    They are what its running requests lack, the sizes of those in its queue, and what its cache does not hold of the
    request.

    Parameters
    ----------
    i
        The request.
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
