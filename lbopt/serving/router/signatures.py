"""Who tells a live router what a request's prompt will do to the experts, before any engine has seen it.

A request's own experts are known when its prefill ends, so:

1. The header `X-Lbopt-Experts` of the request (the field `experts` of `POST /route`), where what ran the prefill
   sends it: `lbopt.locality.counts_as_text` says how it is written.
2. Else what is remembered of requests that began alike: the longest beginning of the prompt, in blocks, of which
   something is known. A follow-up question of a conversation finds the conversation.
3. Else what is remembered of the key that the request names by the header `X-Lbopt-Locality-Key`: a conversation, a
   tenant, whatever the operator likes.
4. Else it is not known, and the request goes to the least loaded worker.

The router remembers the counts of (1), and those that an engine sends back in a header of the same name (the hooks in
`lbopt.locality.hooks` count them). Each is remembered under the key, under the whole beginning in full blocks, and
under its first 1, 2, 4, 8, ... blocks; where several requests share one, the mean counts, in which each weighs as much
as all before it. What has not been used for longest is forgotten first. Beginnings are known by keyed hashes, with a
key of this process alone: no text is kept.

Neither header goes to engines or clients.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.serving.record.writer import PrefixHasher

if TYPE_CHECKING:  # who has no routing table does without `lbopt.locality`
    from lbopt.serving.locality import LocalityRule
    from lbopt.serving.router.job import Job
    from lbopt.serving.rule import LiveRule

_log = logging.getLogger(__name__)

HEADER = "X-Lbopt-Experts"
KEY_HEADER = "X-Lbopt-Locality-Key"

#: Where a signature was from.
SOURCES = ("header", "prefix", "key", "none", "unreadable")
#: What the remembered shares of a request's choices sum to when they stand for counts.
_SCALE = 2**15
_LONGEST_KEY = 256


class Signature(NamedTuple):
    """What a request's prompt did to the experts.

    Parameters
    ----------
    counts
        int64 (L, E).
    is_own
        Whether it was counted for this request; else it is what requests like it did.
    """

    counts: NDArray[np.int64]
    is_own: bool


class Recollection:
    """What is remembered of requests, least recently used forgotten first.

    Parameters
    ----------
    room
        Entries at most; 0 = nothing is remembered.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._shares: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._shares)

    def find(self, name: str) -> NDArray[np.float32] | None:
        """Return the shares of choices that are remembered under a name."""
        found = self._shares.get(name)
        if found is not None:
            self._shares.move_to_end(name)
        return found

    def add(self, name: str, shares: NDArray[np.float32]) -> None:
        """Remember shares under a name."""
        if not self._room:
            return
        before = self._shares.get(name)
        self._shares[name] = shares if before is None else 0.5 * (before + shares)
        self._shares.move_to_end(name)
        if len(self._shares) > self._room:
            self._shares.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        self._shares.clear()


class Asked(NamedTuple):
    """What a request says of its experts: its signature, and under which names it is remembered."""

    signature: Signature | None
    names: tuple[str, ...]


class Signatures:
    """Finds and remembers the signatures of one router.

    Parameters
    ----------
    rules
        The rules that go by them, by model.
    room
        Entries that are remembered of each model.
    block
        Bytes of a block of a prompt.
    """

    def __init__(self, rules: Mapping[str, list[LocalityRule]], room: int, block: int) -> None:
        self.rules = rules
        self.sources = Counter(dict.fromkeys(SOURCES, 0))
        self.learned = 0
        self._memories = {model: Recollection(room) for model in rules}
        self._hasher = PrefixHasher(secrets.token_bytes(32), block) if room else None

    @property
    def remembered(self) -> dict[str, int]:
        """Entries by model."""
        return {model: len(memory) for model, memory in self._memories.items()}

    def of_request(
        self, headers: Mapping[str, str], data: dict[str, Any], model: str | None, *, chat: bool
    ) -> Asked | None:
        """Return what is known of a request's experts; None where no rule of its model asks.

        Parameters
        ----------
        chat
            Whether it is a chat.
        """
        if model is None or model not in self.rules:
            return None
        prefix = None if self._hasher is None else self._hasher.of(data, model, chat=chat)
        hashes = () if prefix is None else tuple(f"{prefix.kind}:{one}" for one in prefix.hashes)
        return self._asked(headers.get(HEADER), headers.get(KEY_HEADER), hashes, model)

    def of_gateway(self, data: Mapping[str, Any], model: str | None) -> Asked | None:
        """Return the same of a request that a gateway describes, by the fields `experts` and `locality_key`."""
        if model is None or model not in self.rules:
            return None
        text, key = data.get("experts"), data.get("locality_key")
        return self._asked(text if isinstance(text, str) else None, key if isinstance(key, str) else None, (), model)

    def heard(self, job: Job, text: str) -> None:
        """Remember what an engine says that a request's prompt did, where it says it."""
        asked: Asked | None = job.ask.experts
        if not text or asked is None:
            return
        model = job.tracker.pool.model
        counts = self._read(text, model)
        if counts is None:
            return
        self._learn(counts, asked.names, model)
        if asked.signature is None or not asked.signature.is_own:
            for rule in self.rules[model]:
                rule.observe(counts)

    def forget(self) -> None:
        """Forget all that is remembered: another table may keep other layers."""
        for memory in self._memories.values():
            memory.clear()

    def _asked(self, text: str | None, key: str | None, hashes: tuple[str, ...], model: str) -> Asked:
        memory = self._memories[model]
        short = [hashes[n - 1] for n in _powers(len(hashes))]
        by_key = f"key:{key[:_LONGEST_KEY]}" if key else ""
        names = (*short, *hashes[-1:], *((by_key,) if by_key else ()))
        names = tuple(dict.fromkeys(names))
        if text:
            counts = self._read(text, model)
            if counts is not None:
                self.sources["header"] += 1
                self._learn(counts, names, model)
                return Asked(Signature(counts, is_own=True), names)
        for name in reversed(hashes):
            if (shares := memory.find(name)) is not None:
                self.sources["prefix"] += 1
                return Asked(self._guess(shares, model), names)
        if by_key and (shares := memory.find(by_key)) is not None:
            self.sources["key"] += 1
            return Asked(self._guess(shares, model), names)
        self.sources["none"] += 1
        return Asked(None, names)

    def _read(self, text: str, model: str) -> NDArray[np.int64] | None:
        from lbopt.locality.wire_form import counts_of_text

        table = self.rules[model][0].table
        try:
            return counts_of_text(text, table.shape, table.layers)
        except InputError as error:
            self.sources["unreadable"] += 1
            if self.sources["unreadable"] <= 10:
                _log.warning("%s", error)
            return None

    def _learn(self, counts: NDArray[np.int64], names: tuple[str, ...], model: str) -> None:
        kept = counts[self.rules[model][0].table.layers]
        total = kept.sum()
        if not total:
            return
        self.learned += 1
        shares = (kept / total).astype(np.float32)
        for name in names:
            self._memories[model].add(name, shares)

    def _guess(self, shares: NDArray[np.float32], model: str) -> Signature:
        table = self.rules[model][0].table
        counts = np.zeros((table.shape.num_layers, table.shape.num_experts), dtype=np.int64)
        counts[table.layers] = np.rint(shares * _SCALE)
        return Signature(counts, is_own=False)


def _powers(number: int) -> list[int]:
    """Return the powers of two up to `number`."""
    return [2**n for n in range(number.bit_length())]


def signatures_of(rules: Mapping[str, tuple[str, LiveRule]], room: int, block: int) -> Signatures | None:
    """Return who finds signatures for these rules; None where none of them goes by experts.

    Parameters
    ----------
    room, block
        As of `Signatures`.
    """
    found: dict[str, list[LocalityRule]] = {}
    for model, rule in rules.values():
        if rule.locality is not None:
            found.setdefault(model, []).append(rule.locality)
    return Signatures(found, room, block) if found else None
