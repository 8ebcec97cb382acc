"""The per-request ledger: where every request is, by name, whatever happens to the counters of the instances.

A request is queued, in flight with one holder (instance, seq), done or refused. The first answer counts: the first
token of any batch that the request was ever in makes it done, also if its holder was given up meanwhile and it is
queued again.

The ledger has an entry for each request that is not yet done or refused, and remembers the numbers of the last few
that are, so that what comes a second time is recognised. Entries are in a persistent map (a hash array mapped trie):
an event makes a new ledger without copying the old one, in time that does not grow with the requests of the past.

The queue is what was given up and what was never sent, in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Literal, NamedTuple

from immutables import Map

from lbopt.exceptions import InputError

Place = Literal["queued", "in flight", "done", "refused"]
PLACES: tuple[Place, ...] = ("queued", "in flight", "done", "refused")


class Entry(NamedTuple):
    """One request that is queued or in flight.

    Parameters
    ----------
    tokens
        Of its prompt.
    order
        So many requests arrived before it.
    since
        So many dispatches had been made when it was queued, the last time.
    holder
        (instance, seq) of the batch it is in; None = queued.
    tried
        All batches that it was ever in.
    """

    tokens: int
    order: int
    since: int
    holder: tuple[int, int] | None = None
    tried: tuple[tuple[int, int], ...] = ()


class Sums(NamedTuple):
    """Tokens in each place."""

    queued: int = 0
    in_flight: int = 0
    done: int = 0
    refused: int = 0


class Ledger(NamedTuple):
    """Every change returns a new ledger.

    Parameters
    ----------
    entries
        By request: what is queued or in flight.
    fresh
        By order: requests that were never sent.
    first, arrived
        Order of the oldest of them, and of the next to come.
    back
        (order, request) of those queued again, ascending; one that is done by now may still be in it.
    waiting
        Number of requests that are queued.
    dispatches
        Batches sent.
    past, finished
        The requests that were last done or refused: by the order in which they were, from `number_finished` back, and
        by name.
    sums
        Tokens.
    """

    entries: Map[int, Entry] = Map()
    fresh: Map[int, int] = Map()
    first: int = 0
    arrived: int = 0
    back: tuple[tuple[int, int], ...] = ()
    waiting: int = 0
    dispatches: int = 0
    past: Map[int, int] = Map()
    finished: Map[int, int] = Map()
    number_finished: int = 0
    sums: Sums = Sums()

    @property
    def queue(self) -> tuple[int, ...]:
        """All requests that are queued, the next one first."""
        return tuple(request for request, _ in self.queued())

    def knows(self, request: int) -> bool:
        """Return whether a request has arrived, as far as the ledger remembers."""
        return request in self.entries or request in self.finished

    def arrive(self, request: int, tokens: int) -> Ledger:
        """Enter a new request at the end of the queue."""
        if tokens < 1:
            raise InputError(f"request {request} has {tokens} tokens; expected at least 1")
        sums = self.sums
        return self._replace(
            entries=self.entries.set(request, Entry(tokens, self.arrived, self.dispatches)),
            fresh=self.fresh.set(self.arrived, request),
            arrived=self.arrived + 1,
            waiting=self.waiting + 1,
            sums=Sums(sums.queued + tokens, *sums[1:]),
        )

    def head(self, room: int | None) -> tuple[int, ...]:
        """Return the oldest requests that `room` tokens of headroom admit, at least one; None = all."""
        if room is None:
            return self.queue
        taken: list[int] = []
        for request, entry in self.queued():
            if taken and room <= 0:
                break
            taken.append(request)
            room -= entry.tokens
        return tuple(taken)

    def dispatch(self, requests: tuple[int, ...], holder: tuple[int, int], counts: bool = True) -> Ledger:
        """Move requests from the queue to a holder; if that `counts`, all others in the queue were left behind."""
        tokens, orders = 0, []
        with self.entries.mutate() as entries:
            for request in requests:
                entry = entries[request]
                tokens += entry.tokens
                orders.append(entry.order)
                entries[request] = Entry(entry.tokens, entry.order, entry.since, holder, (*entry.tried, holder))
            moved = entries.finish()
        kept, first = self.fresh, self.first
        with kept.mutate() as fresh:
            for order in orders:
                fresh.pop(order, None)
            kept = fresh.finish()
        while first < self.arrived and first not in kept:
            first += 1
        sums = self.sums
        return self._replace(
            entries=moved,
            fresh=kept,
            first=first,
            back=tuple(pair for pair in self.back if _waits(moved, pair)) if self.back else (),
            waiting=self.waiting - len(requests),
            dispatches=self.dispatches + counts,
            sums=Sums(sums.queued - tokens, sums.in_flight + tokens, sums.done, sums.refused),
        )

    def refuse_impatient(self, patience: int | None, remembered: int) -> tuple[Ledger, tuple[int, ...]]:
        """Refuse who was left behind more than `patience` times; returns the ledger and the refused."""
        if patience is None or not self.waiting:
            return self, ()
        latest = self.dispatches - patience
        refused = [request for request, entry in self._again() if entry.since < latest]
        # Those never sent wait in the order of arrival: the first that is patient ends the search.
        for request, entry in self._never_sent():
            if entry.since >= latest:
                break
            refused.append(request)
        ledger = self
        for request in refused:
            ledger = ledger.close(request, "refused", remembered)
        return ledger, tuple(refused)

    def close(self, request: int, place: Literal["done", "refused"], remembered: int) -> Ledger:
        """Take a request off the ledger, done or refused, and remember it as one of the last `remembered`."""
        entry, sums = self.entries[request], self.sums
        waits = entry.holder is None
        fresh = self.fresh.delete(entry.order) if waits and not entry.tried else self.fresh
        past, finished, number = self.past.set(self.number_finished, request), self.finished, self.number_finished
        finished = finished.set(request, number)
        if number >= remembered:
            forgotten = past[number - remembered]
            past = past.delete(number - remembered)
            if finished.get(forgotten) == number - remembered:
                finished = finished.delete(forgotten)
        done = place == "done"
        return self._replace(
            entries=self.entries.delete(request),
            fresh=fresh,
            waiting=self.waiting - waits,
            past=past,
            finished=finished,
            number_finished=number + 1,
            sums=Sums(
                sums.queued - waits * entry.tokens,
                sums.in_flight - (not waits) * entry.tokens,
                sums.done + done * entry.tokens,
                sums.refused + (not done) * entry.tokens,
            ),
        )

    def requeue(self, instance: int, batches: Iterable[tuple[int, tuple[int, ...]]]) -> Ledger:
        """Put what an instance still holds of (seq, requests) back into the queue, in the order of arrival."""
        returned, tokens = [], 0
        with self.entries.mutate() as entries:
            for seq, requests in batches:
                for request in requests:
                    entry = entries.get(request)
                    if entry is not None and entry.holder == (instance, seq):
                        entries[request] = Entry(entry.tokens, entry.order, self.dispatches, None, entry.tried)
                        returned.append((entry.order, request))
                        tokens += entry.tokens
            moved = entries.finish()
        if not returned:
            return self
        sums = self.sums
        return self._replace(
            entries=moved,
            back=tuple(merge(self.back, sorted(returned))),
            waiting=self.waiting + len(returned),
            sums=Sums(sums.queued + tokens, sums.in_flight - tokens, sums.done, sums.refused),
        )

    def tokens(self) -> dict[Place, int]:
        """Return the tokens in each place; together they are all that arrived."""
        return dict(zip(PLACES, self.sums, strict=True))

    def queued(self) -> Iterator[tuple[int, Entry]]:
        """Iterate over all that are queued, the next one first: by order of arrival."""
        if not self.back:
            return self._never_sent()
        return merge(self._again(), self._never_sent(), key=lambda one: one[1].order)

    def left_behind(self) -> Ledger:
        """Count a dispatch that took no request."""
        return self._replace(dispatches=self.dispatches + 1)

    def _again(self) -> Iterator[tuple[int, Entry]]:
        for pair in self.back:
            if _waits(self.entries, pair):
                yield pair[1], self.entries[pair[1]]

    def _never_sent(self) -> Iterator[tuple[int, Entry]]:
        for order in range(self.first, self.arrived):
            request = self.fresh.get(order)
            if request is not None:
                yield request, self.entries[request]


def _waits(entries: Map[int, Entry], pair: tuple[int, int]) -> bool:
    entry = entries.get(pair[1])
    return entry is not None and entry.order == pair[0] and entry.holder is None
