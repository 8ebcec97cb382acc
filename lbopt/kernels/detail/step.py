"""One step of workers in detail: every running request is visited.

Decoding requests come first; what a worker may still compute goes to prompts, in the order of its list. A request that
ends or does not end keeps the order of the others. Definition: the manual, page *detail*, "A step".
"""

import math

import numpy as np

from lbopt.kernels.arrays import Ints, Record, Records
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.pausing import plan_pauses
from lbopt.kernels.detail.state import blocks_of
from lbopt.kernels.gating import VLLM, end_gated_step
from lbopt.kernels.routing.books import strike
from lbopt.kernels.sampling.draw import uniform, word
from lbopt.kernels.simulation.state import Requests, Rows, Setting, State, share
from lbopt.kernels.simulation.step import end_row, seconds_together


@kernel
def take_detailed_step(requests: Requests, setting: Setting, state: State, rows: Rows) -> None:
    """Advance by one step and write its row. Cost: one visit to every running request.

    Parameters
    ----------
    state
        Changed in place.
    rows
        Row ``state.progress.row`` is written.
    """
    progress, detail = state.progress, state.detail
    r, G = progress.row, state.load.size
    rows.blocks[r] = detail.used.sum()
    progress.step += 1

    slowest, active, made, computed, completed = 0.0, 0, 0, 0, 0
    drafts = False
    of_running = setting.seconds_of_running
    for w in range(G):
        ran = state.running[w]
        attended, part, tokens, prompts, decoding = _run_worker(w, requests, setting, state)
        rows.barrier_loads[r, w] = attended
        if rows.running.shape[0] > 0:
            rows.running[r, w] = part
        own = setting.seconds_per_token * attended
        if of_running.size > 0:
            own += of_running[part]
        own += prompts * detail.rules.compute_seconds + detail.moved[w] * detail.rules.move_seconds
        detail.moved[w] = 0
        slowest = max(slowest, own * detail.slow[w])
        active += part
        made += tokens
        computed += prompts
        completed += ran - state.running[w]
        drafts = drafts or decoding > 0
    together = seconds_together(setting, rows.barrier_loads[r], active)
    if drafts and detail.rules.draft > 0:
        together += detail.rules.draft_seconds
    seconds = setting.fixed_seconds + slowest + together

    over, any_full = 0, False
    for w in range(G):
        rows.post_loads[r, w] = state.load[w]
        any_full = any_full or state.running[w] == state.slots[w]
        if setting.kv_capacity >= 0 and rows.barrier_loads[r, w] > setting.kv_capacity:
            over += 1
    rows.made[r] = made
    rows.computed[r] = computed
    rows.experts[r] = math.nan
    end_row(active, completed, over, seconds, progress, rows)
    end_gated_step(computed, seconds, any_full, detail.gate)
    plan_pauses(state)


@kernel
def _run_worker(w: int, requests: Requests, setting: Setting, state: State) -> tuple[int, int, int, int, int]:
    """Let worker `w` do its part of the step.

    Parameters
    ----------
    state
        Changed in place.

    Returns
    -------
    tuple of ints
        Tokens attended to, requests that took part, tokens made, tokens computed, and requests that decoded.
    """
    detail, rules, step = state.detail, state.detail.rules, state.progress.step
    seats, tracks, first_token_step = detail.seats[w], detail.tracks, detail.first_token_step
    budget, draft, seed = rules.budget, rules.draft, rules.seed
    enforced, block = rules.blocks >= 0, rules.block
    gated = detail.gate.terms.code >= VLLM
    stops = gated and detail.gate.ranks[w].stops == 1
    n = state.running[w]
    left = 0
    if budget > 0:
        left = budget - (1 + draft) * (n - detail.gate.ranks[w].begun if gated else _num_decoding(n, seats, tracks))
    attended, part, tokens, prompts, decoding, kept, begun = 0, 0, 0, 0, 0, 0, 0
    load, used = state.load[w], detail.used[w]
    for seat in range(n):
        i = seats[seat]
        track = tracks[i]
        lacking = track.tokens - track.computed
        drafts = draft
        if lacking > 0:
            more = lacking
            if budget > 0:
                more = 0 if stops and lacking > 1 else min(lacking, left)
                left -= more
                drafts = 0
            _compute(track, more, detail.tally)
            prompts += more
            if track.computed < track.tokens:
                begun += 1
                if more > 0:
                    part += 1
                    attended += track.computed
                seats[kept] = i
                kept += 1
                continue
        part += 1
        attended += track.tokens
        if lacking == 0 or budget == 0:
            decoding += 1
        new = 1
        if drafts > 0:
            new += _accepted(word(seed, i), track.made, drafts, track.chance)
        if track.made == 0:
            first_token_step[i] = step
        new = min(new, track.wanted - track.made)
        tokens += new
        track.made += new
        if track.made == track.wanted:
            load -= track.tokens
            used -= track.blocks
            track.blocks = 0
            detail.finish_step[i] = step
            strike(i, w, setting.code, requests.prompt, state.sight.books)
            continue
        track.tokens += new
        track.computed = track.tokens
        load += new
        if enforced and track.blocks * block < track.tokens + draft:  # no division for every token
            blocks = blocks_of(track.tokens, rules)
            used += blocks - track.blocks  # what its next step needs, also where there are none left
            track.blocks = blocks
        seats[kept] = i
        kept += 1
    state.running[w] = kept
    state.load[w] = load
    detail.used[w] = used
    if gated:
        detail.gate.ranks[w].begun = begun
    return attended, part, tokens, prompts, decoding


@kernel
def _num_decoding(n: int, seats: Ints, tracks: Records) -> int:
    """Return how many of the first `n` requests of `seats` have all their tokens computed.

    Parameters
    ----------
    n, seats
        Requests of a worker, int64 (B,).
    tracks
        TRACK (N,).
    """
    decoding = 0
    for seat in range(n):
        track = tracks[seats[seat]]
        if track.computed == track.tokens:
            decoding += 1
    return decoding


@kernel
def _compute(track: Record, more: int, tally: Record) -> None:
    """Compute `more` tokens of a request."""
    again = min(more, track.lost)
    track.lost -= again
    tally.recomputed += again
    track.computed += more


@kernel
def _accepted(start: np.uint64, made: int, drafts: int, chance: float) -> int:
    """Return how many drafted tokens of a request are accepted.

    Parameters
    ----------
    start
        Start of the request's own stream of draws.
    made, drafts
        Tokens so far, and drafted.
    chance
        That one is accepted.
    """
    accepted = 0
    while accepted < drafts and uniform(word(start, made + accepted + 1)) < chance:
        accepted += 1
    return accepted


@kernel
def draw_chances(seed: np.uint64, mean: float, spread: float, tracks: Records) -> None:
    """Write the chance that a drafted token is accepted into the track of each request.

    Parameters
    ----------
    mean, spread
        Middle and half-width of the even distribution, which is cut at 0 and 1.
    tracks
        TRACK (N,); changed in place.
    """
    for i in range(tracks.size):
        tracks[i].chance = min(1.0, max(0.0, mean + spread * (2.0 * share(seed, i, 0) - 1.0)))
