"""What routers see of the workers: the truth, or the last report of each worker and what they sent it since.

Worker w makes report n at the first decision from time T[w, n] on, where T[w, 0] = 0 and

    T[w, n + 1] = T[w, n] + period (1 + jitter (2 u - 1)),    u the even draws of the worker's own stream,

and with a period of zero at every decision. A report is lost where the odd draw is below `lost`. Else all front ends
see the worker as it is at this moment; what a front end added by itself is gone. An optimistic front end adds each
request that it sends: running where it sees a free slot, else queued; a few rules add it in a form of their own,
`AS_QUEUED` and `AS_TOKENS`. Front ends do not see what others send.

Request i comes in through front end i mod C. Where sight is not stale there is one front end, and its arrays are those
of the truth, so that rules read the same arrays in both cases.

The books of a front end are what it sent itself and has not ended (`routing.books`): it knows that exactly, and no
report wipes it. Rules whose workers report such sums instead see them like everything else, `reports.gathers`.

Source: the balancers of vLLM and SGLang (reports of 20 ms to 10 s, own requests added until the next one).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, Records
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import uniform, word

#: What a front end adds of a request that it sends: nothing; one request, running or queued; C queued requests (vllm);
#: its queued tokens (smg).
NOTHING = 0
OPTIMISTIC = 1
AS_QUEUED = 2
AS_TOKENS = 3

#: How reports come. `stale`: 0 where routers see the truth; `own`: one of the codes above; `gathers`: 1 where reports
#: carry the books.
REPORTS = np.dtype(
    [
        ("stale", np.int64),
        ("own", np.int64),
        ("gathers", np.int64),
        ("period", np.float64),  # s
        ("jitter", np.float64),
        ("lost", np.float64),
        ("seed", np.uint64),
    ],
    align=True,
)


@by_reference
class Sight(NamedTuple):
    """What each of C front ends sees of G workers, and when the next reports are due."""

    load: Ints  # int64 (C, G), resident tokens
    running: Ints  # int64 (C, G)
    queued: Ints  # int64 (C, G), requests bound to the worker but not started
    queued_tokens: Ints  # int64 (C, G)
    committed: Ints  # int64 (C, G), blocks, where sight is stale and a rule outside may ask for them; else (C, 0)
    books: Ints  # int64 (C, G), the truth: what each front end has in its books; (C, 0) for rules without
    own: Ints  # the same as the rule sees it
    turns: Records  # routing.state.TURN (C,), where round-robin stands
    due: Floats  # float64 (G,), s: of the next report
    made: Ints  # int64 (G,), reports so far
    reports: Record  # REPORTS


@kernel
def share(seed: np.uint64, w: int, n: int) -> float:
    """Return draw `n` of worker `w`, in [0, 1)."""
    return uniform(word(word(seed, w), n))


@kernel
def make_reports(
    sight: Sight, clock: float, load: Ints, running: Ints, queued: Ints, queued_tokens: Ints, committed: Ints
) -> None:
    """Let every worker whose report is due be seen as it is, unless the report is lost.

    Parameters
    ----------
    sight
        Stale sight; changed in place.
    clock
        Now, s.
    load, running, queued, queued_tokens, committed
        int64 (G,), the truth; the last is read only where `Sight` has it.
    """
    reports, due, made = sight.reports, sight.due, sight.made
    for w in range(due.size):
        arrived = False
        while due[w] <= clock:
            n = made[w]
            made[w] = n + 1
            arrived = arrived or reports.lost == 0.0 or share(reports.seed, w, 2 * n + 1) >= reports.lost
            if reports.period == 0.0:
                break
            u = share(reports.seed, w, 2 * n) if reports.jitter > 0.0 else 0.5
            due[w] = due[w] + reports.period * (1.0 + reports.jitter * (2.0 * u - 1.0))
        if arrived:
            for f in range(len(sight.load)):
                sight.load[f, w] = load[w]
                sight.running[f, w] = running[w]
                sight.queued[f, w] = queued[w]
                sight.queued_tokens[f, w] = queued_tokens[w]
                if sight.committed.shape[1] > 0:
                    sight.committed[f, w] = committed[w]
                if reports.gathers == 1:
                    sight.own[f, w] = sight.books[f, w]


@kernel
def note_sent(f: int, w: int, prompt: int, slots: int, sight: Sight) -> None:
    """Add a request that front end `f` has sent to worker `w` to what it sees, where it does so.

    Parameters
    ----------
    f, w
        Front end and worker.
    prompt, slots
        Tokens of the request; slots of a worker.
    sight
        Stale sight; changed in place.
    """
    own = sight.reports.own
    if own == NOTHING:
        return
    if sight.reports.gathers == 1:
        sight.own[f, w] += prompt
    if own == AS_QUEUED:
        sight.queued[f, w] += len(sight.load)
    elif own == AS_TOKENS:
        sight.queued_tokens[f, w] += prompt
    elif sight.running[f, w] < slots:
        sight.running[f, w] += 1
        sight.load[f, w] += prompt
    else:
        sight.queued[f, w] += 1
        sight.queued_tokens[f, w] += prompt


@kernel
def note_blocks(f: int, w: int, blocks: int, sight: Sight) -> None:
    """Add the blocks of a request that front end `f` has sent to worker `w` to what it sees, where it does so.

    Parameters
    ----------
    f, w
        Front end and worker.
    blocks
        That the request needs.
    sight
        Changed in place.
    """
    if sight.committed.shape[1] > 0 and sight.reports.own != NOTHING:
        sight.committed[f, w] += blocks


@kernel
def next_report(sight: Sight, running: Ints, queued: Ints) -> float:
    """Return when the next report is due, s; infinity where none will say anything that routers do not see already.

    Zero, so at once, where reports come with every decision and the last one was lost.

    Parameters
    ----------
    sight
        Of the run.
    running, queued
        int64 (G,), the truth.
    """
    reports = sight.reports
    if reports.stale == 0 or (reports.period == 0.0 and reports.lost == 0.0):
        return np.inf
    outdated = False
    for f in range(len(sight.running)):
        for w in range(sight.due.size):
            outdated = outdated or sight.running[f, w] != running[w] or sight.queued[f, w] != queued[w]
    return sight.due.min() if outdated else np.inf
