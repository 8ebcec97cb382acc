"""Systems of the explorer that differ in nothing that can matter are one.

`canonical` maps a system to a digest. Two systems with the same digest are bisimilar: whatever may happen to one may
happen to the other (with the same number of faults), takes as long, sends the same batches to instances that correspond
and ends with the same requests served. It forgets the following, and each is a map that commutes with all moves.

Rotation
    The scheduler's step is equivariant under a rotation of the instances: the state and the event with instance g
    named (g + k) mod N give the state and the actions with all instances so named (in another order, where a poll or a
    stepped clock concerns all of them). Proof: each rule reads and writes the state of the instance that the event
    names, or of all in turn with rules that do not depend on which others come first (to give up A, then B, merges
    their requests into the queue by order of arrival, as B, then A, does), but for one: the ring, which goes from
    `turn` upwards modulo N. A rotation maps the ring to the ring. A reflection does not, so that for N = 3 three of the
    six renamings are symmetries; for N = 2 both are. `turn` itself gives the canonical one: instances are counted from
    it, and two systems of one orbit never have the same.
Names of requests
    The step compares names of requests and nothing else, so that it is equivariant under any renaming. A request is
    named by its place among those that are open, in order of arrival, and by its tokens. Those that are done or refused
    have no name: what comes of them is only counted. (All past requests are remembered, `remembered` is above three.)
Numbers of batches and epochs
    They are only compared, except that a new batch has the number after the last one and a new epoch a higher one, and
    that epoch 0 is "none yet". Missing batches are all numbers between two that were sent; those that nobody holds
    requests of say nothing. So the numbers of an instance may be replaced by their ranks among those in use.
What never decides
    `in_flight` (checked by the monitor, read by no rule), what was counted, the requests and the number left of a batch
    (the ledger's holders say the same), which batches a request was in if no answer of them can come any more, the
    order of `back` beyond the order of arrival; `known_empty` without polls and `idle_bypass`, `backlog` without
    `batch_tokens`, `since` without `patience`; a deadline where nothing is due; `answered` up to `fence`.
What a message says
    An end of a pass or an answer matters by what it does: whether it is of the last batch (never again once it is not),
    whether something is left, which held batches are gone, missing or forgotten, and a pass time if it is the first of
    its batch. Messages of an old epoch only make the scheduler look whether it can send. Batches and polls to an engine
    that is dead, or was restarted since, do nothing at all, and are left out.
The past
    Times count from now. An interval's end that has passed has passed (on a lattice not: the next tick counts from it).
    The last dispatch matters only while the longest interval counts from it: beyond that, all are alike.

The monitor is not in it: it watches the first path to each digest. Fields of the protocol that this module does not
know are taken as they are: a new one makes more systems and hides none, unless it holds something of each instance,
which a rotation would have to turn. Those that serve another option (see `EXTENSIONS`) decide nothing without it, and
are left out then; with dispatch `ahead`, whose `outlook` holds something of each instance, `explore` makes no quotient.
"""

from __future__ import annotations

import math
from dataclasses import fields
from hashlib import blake2b

from lbopt.prefill.protocol import InstanceState, Ledger, Phase, SchedulerState
from lbopt.prefill.protocol.faults import Engine, Work
from lbopt.prefill.protocol.ledger import Entry
from lbopt.prefill.protocol.messages import EndForward, FirstToken, PollAnswer, Send
from lbopt.prefill.protocol.state import Batch

#: What `canonical` knows of each class: used, or proved not to decide.
KNOWN: dict[type, str] = {
    InstanceState: "phase seq deadline in_flight backlog known_empty measured fence epoch acknowledged answered "
    "batches on_trial armed",
    SchedulerState: "instances ledger pace now ahead due last_dispatch turn counts",
    Ledger: "entries fresh first arrived back waiting dispatches past finished number_finished sums",
    Entry: "tokens order since holder tried",
    Batch: "seq requests left gone",
    Engine: "chunk epoch life up work newest fence missing passes running pass_seq late_top_ups done",
    Work: "seq request tokens",
    Send: "instance seq fence requests epoch",
    EndForward: "time instance seq seconds remaining epoch oldest missing",
    FirstToken: "time instance seq request epoch",
    PollAnswer: "time instance seq depth epoch oldest missing asked",
}
_PHASES = {phase: number for number, phase in enumerate(Phase)}


def _names(kind: type) -> tuple[str, ...]:
    return kind._fields if hasattr(kind, "_fields") else tuple(one.name for one in fields(kind))


#: Options with fields of their own, and their values without these.
EXTENSIONS = {"allocation": None, "dispatch": "ready", "ready": "ended", "pace": "median", "target": "skip", "units": 1}
#: The others, taken as they are.
UNKNOWN = {kind: tuple(name for name in _names(kind) if name not in known.split()) for kind, known in KNOWN.items()}


def digest(key: tuple) -> bytes:
    """128 bits of a key. Not Python's hash, for which -1.0 and -2.0 are the same."""
    return blake2b(repr(key).encode(), digest_size=16).digest()


def ahead(time: float, now: float) -> float:
    """Seconds from now on; -1 = never, or not set."""
    return -1.0 if time == math.inf else max(0.0, round(time - now, 6))


def canonical(system, setting, polls: bool) -> tuple:
    """What decides the future of a system, up to renaming.

    Parameters
    ----------
    system
        A `System` of the explorer.
    setting
        Of the protocol.
    polls
        Whether instances are polled.
    """
    state, ledger = system.state, system.state.ledger
    count, now, entries = len(state.instances), state.now, system.state.ledger.entries
    by_order = sorted(entries, key=lambda request: entries[request].order)
    name = {request: rank for rank, request in enumerate(by_order)}
    mail = [[] for _ in range(count)]
    for message in system.net:
        mail[message[1]].append(message)
    ranks, parts = [], []
    for k in range(count):
        g = (state.turn + k) % count
        one = _Instance(system, g, name, mail[g], setting, polls)
        parts.append(one.key(system.ends[g], now, system.now))
        ranks.append(one.rank)
    books = []
    for request in by_order:
        entry = entries[request]
        holder = -1
        if entry.holder is not None:
            k = (entry.holder[0] - state.turn) % count
            holder = k, ranks[k][entry.holder[1]]
        since = ledger.dispatches - entry.since if setting.patience is not None and holder == -1 else 0
        books.append((entry.tokens, holder, since, *_unknown(entry, setting)))
    timers = sorted(
        (which if which < 0 else (which - state.turn) % count, ahead(at, system.now))
        for which, at in system.timers.items()
    )
    last, due = -1.0, round(state.due - now, 6)
    if setting.timer == "spacing":
        due = max(0.0, due)
        if state.last_dispatch is not None:
            last = min(round(now - state.last_dispatch, 6), setting.longest_pass + setting.latency)
    lag = round(system.now + system.skew + state.ahead - now, 6) + 0.0
    more = *_unknown(state, setting), *_unknown(ledger, setting)
    scheduler = state.pace.in_order(setting.window), round(state.pace.interval, 9), due, last, *more
    return parts, books, scheduler, timers, system.arrived, lag


def _unknown(one, setting) -> tuple:
    if all(getattr(setting, name, value) == value for name, value in EXTENSIONS.items()):
        return ()
    return tuple(getattr(one, name) for name in UNKNOWN[type(one)])


class _Instance:
    """One instance with its engine and the messages to and from it."""

    def __init__(self, system, g: int, name: dict[int, int], mail: list[tuple], setting, polls: bool) -> None:
        self.at, self.engine = system.state.instances[g], system.engines[g]
        at, engine = self.at, self.engine
        self.name, self.entries, self.g = name, system.state.ledger.entries, g
        self.setting = setting
        self.limited, self.asks = setting.batch_tokens is not None, polls or setting.idle_bypass
        self.held = [batch.seq for batch in at.batches]
        self.answered = max(at.fence, at.answered)
        self.nothing = 0
        numbers = {at.seq, at.fence, at.measured, at.acknowledged, self.answered, *self.held}
        epochs = {at.epoch, engine.epoch} if engine.up else {at.epoch}
        if engine.up:
            numbers |= {engine.newest, engine.fence, *(work.seq for work in engine.work)}
            if engine.running is not None:
                numbers.add(engine.pass_seq)
        said, to_engine = [], []
        for kind, _, epoch, what in mail:
            if kind == "event":
                if 0 < what.epoch < at.epoch:
                    self.nothing += 1
                    continue
                epochs.add(what.epoch)
                told = self._told(what)
                numbers |= {told[2], *told[-1]}
                said.append((what.epoch, *told, _unknown(what, self.setting)))
            elif kind == "poll":
                if engine.up:
                    numbers.add(what)
                    to_engine.append(("poll", what, 0, (), ()))
            elif engine.up and engine.epoch == epoch:
                if what.epoch not in (0, engine.epoch):
                    to_engine.append(("refused", at.seq, 0, (), ()))
                    continue
                numbers |= {what.seq, what.fence}
                named = tuple((self._named(request, what.seq), system.tokens[request]) for request in what.requests)
                to_engine.append(("batch", what.seq, what.fence, named, _unknown(what, self.setting)))
        self.rank = {number: rank for rank, number in enumerate(sorted({0, *numbers}))}
        self.epochs = {epoch: rank for rank, epoch in enumerate(sorted({0, *epochs}))}
        self.said, self.to_engine = said, to_engine

    def _named(self, request: int, seq: int) -> int:
        """The request's name, or -1 if no answer of this batch can end it."""
        entry = self.entries.get(request)
        return self.name[request] if entry is not None and (self.g, seq) in entry.tried else -1

    def _told(self, what) -> tuple:
        """What an event does: kind, flags, one number that matters by itself, and numbers of held batches."""
        at, held = self.at, self.held
        if isinstance(what, FirstToken):
            newest = what.seq if self.answered < what.seq <= at.seq else 0
            return "token", self._named(what.request, what.seq), newest, 0, ()
        left = what.remaining if isinstance(what, EndForward) else what.depth
        oldest = what.oldest if left else what.seq + 1
        gone = [seq for seq in held if seq < oldest and seq <= what.seq]
        missing = [seq for seq in held if seq in what.missing]
        newest = what.seq == at.seq
        if isinstance(what, EndForward):
            fresh = what.seq if what.seq > at.measured else 0
            seconds = what.seconds if fresh else 0.0
            tokens = left if self.limited and newest else bool(left)
            flags = newest, tokens, seconds, len(gone), len(missing)
            return "end", flags, fresh, 0, (*gone, *missing)
        lost = [seq for seq in held if seq <= what.asked] if what.asked > what.seq else []
        return "answer", (newest and not left, len(gone), len(missing), len(lost)), 0, 0, (*gone, *missing, *lost)

    def key(self, end: float, now: float, true_now: float) -> tuple:
        at, engine, rank = self.at, self.engine, self.rank
        instance = (
            _PHASES[at.phase],
            rank[at.seq],
            ahead(at.deadline, now) if at.due < math.inf else -1.0,
            at.backlog if self.limited else 0,
            self.asks and at.known_empty,
            rank[at.measured],
            rank[at.fence],
            self.epochs[at.epoch],
            rank[at.acknowledged],
            rank[self.answered],
            [(rank[batch.seq], ahead(batch.gone, now), *_unknown(batch, self.setting)) for batch in at.batches],
            at.on_trial,
            ahead(at.armed, now),
            *_unknown(at, self.setting),
        )
        said = sorted(
            repr((self.epochs[epoch], kind, flags, rank[number], [rank[seq] for seq in seqs], more))
            for epoch, kind, flags, number, _, seqs, more in self.said
        )
        to_engine = sorted(
            repr((kind, rank[number], rank[fence], named, more)) for kind, number, fence, named, more in self.to_engine
        )
        if not engine.up:
            return instance, self.nothing, said, 0
        place = {id(work): n for n, work in enumerate(engine.work)}
        setting = self.setting
        works = [(rank[w.seq], self._named(w.request, w.seq), w.tokens, *_unknown(w, setting)) for w in engine.work]
        running = -1 if engine.running is None else [(place[id(work)], tokens) for work, tokens in engine.running]
        body = (
            self.epochs[engine.epoch],
            rank[engine.newest],
            rank[engine.fence],
            [rank[seq] for seq in self.held if seq in engine.missing],
            works,
            running,
            -1 if engine.running is None else rank[engine.pass_seq],
            ahead(end, true_now),
            *_unknown(engine, setting),
        )
        return instance, self.nothing, said, body, to_engine
