"""The per-request ledger: where every request is, by name, whatever happens to the counters of the instances.

A request is queued, in flight with one holder (instance, seq), done or refused. Only its holder can finish it: a first
token from an instance that lost the request (it was removed, and the request requeued) comes to nothing. A watchdog
resets counters; it has no business here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from lbopt.exceptions import InputError

Place = Literal["queued", "in flight", "done", "refused"]
PLACES: tuple[Place, ...] = ("queued", "in flight", "done", "refused")


@dataclass(frozen=True, slots=True)
class Entry:
    """One request.

    Parameters
    ----------
    tokens
        Of its prompt.
    place
        Where it is.
    holder
        (instance, seq) of the batch it is in, while in flight.
    left_behind
        Dispatches that went without it.
    """

    tokens: int
    place: Place = "queued"
    holder: tuple[int, int] | None = None
    left_behind: int = 0


@dataclass(frozen=True, slots=True)
class Ledger:
    """All requests that ever arrived, and the queue, the next one first. Every change returns a new ledger."""

    entries: Mapping[int, Entry]
    queue: tuple[int, ...] = ()

    def arrive(self, request: int, tokens: int) -> Ledger:
        """Enter a request at the end of the queue."""
        if request in self.entries:
            raise InputError(f"request {request} arrives a second time; expected every request to have its own number")
        if tokens < 1:
            raise InputError(f"request {request} has {tokens} tokens; expected at least 1")
        return Ledger({**self.entries, request: Entry(tokens)}, (*self.queue, request))

    def head(self, room: int | None) -> tuple[int, ...]:
        """Return the oldest requests that `room` tokens of headroom admit, at least one; None = all."""
        if room is None:
            return self.queue
        taken: list[int] = []
        for request in self.queue:
            if taken and room <= 0:
                break
            taken.append(request)
            room -= self.entries[request].tokens
        return tuple(taken)

    def dispatch(self, requests: tuple[int, ...], holder: tuple[int, int]) -> Ledger:
        """Move requests from the queue to a holder; all others in the queue were left behind."""
        entries = dict(self.entries)
        for request in requests:
            entries[request] = replace(entries[request], place="in flight", holder=holder)
        rest = tuple(request for request in self.queue if entries[request].place == "queued")
        for request in rest:
            entries[request] = replace(entries[request], left_behind=entries[request].left_behind + 1)
        return Ledger(entries, rest)

    def refuse_impatient(self, patience: int | None) -> tuple[Ledger, tuple[int, ...]]:
        """Refuse who was left behind more than `patience` times; returns the ledger and the refused."""
        refused = tuple(r for r in self.queue if patience is not None and self.entries[r].left_behind > patience)
        if not refused:
            return self, ()
        changed = {request: replace(self.entries[request], place="refused") for request in refused}
        return Ledger({**self.entries, **changed}, tuple(r for r in self.queue if r not in changed)), refused

    def finish(self, request: int, holder: tuple[int, int]) -> Ledger | None:
        """Note a first token; None if it did not come from the request's holder."""
        entry = self.entries.get(request)
        if entry is None or entry.place != "in flight" or entry.holder != holder:
            return None
        return Ledger({**self.entries, request: replace(entry, place="done", holder=None)}, self.queue)

    def requeue(self, instance: int) -> Ledger:
        """Put all that an instance holds, of whatever batch, back into the queue, in the order of arrival."""
        back = [request for request, entry in self.entries.items() if entry.holder and entry.holder[0] == instance]
        changed = {request: replace(self.entries[request], place="queued", holder=None) for request in back}
        waiting = {*back, *self.queue}
        entries = {**self.entries, **changed}  # in the order of arrival, as dictionaries keep theirs
        return Ledger(entries, tuple(request for request in entries if request in waiting))

    def tokens(self) -> dict[Place, int]:
        """Return the tokens in each place; together they are all that arrived."""
        sums: dict[Place, int] = dict.fromkeys(PLACES, 0)
        for entry in self.entries.values():
            sums[entry.place] += entry.tokens
        return sums
