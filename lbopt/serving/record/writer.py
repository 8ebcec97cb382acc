"""The record of a router: a row for each request and decision, and what prompts begin with, as keyed hashes.

What prompts begin with, told by keyed hashes: equal ones are seen to be equal, and nothing is said of their words.

A prompt is a row of bytes: the text of a completion, tools and messages of a chat in their order, or four bytes a token
where a client sends tokens. Its hash number j is BLAKE2b, keyed, of the model and of the first (j + 1) * `block` bytes,
cut to eight bytes: equal hashes mean equal prompts up to there, as hashes of caches of prefixes do. Bytes beyond the
last full block have none.

Without the key words cannot be tried until a hash fits. The key is the installation's: a file that only its owner may
read, made once, kept apart from records, and written into none of them. A record holds the key's own fingerprint, by
which two records of one installation are known to be comparable.

Source of the function: RFC 7693; of hashes that include all before: the manual of `lbopt.model.trace`.

Writes `decisions.jsonl`: one row a decision, one an ending, and a head that says which router wrote them.

Rows are put together in a thread, some times a second, so that a decision waits for no disk. A file that has grown is
set aside as ``decisions-000001.jsonl``, and only the newest of those are kept. A full disk loses rows, which are
counted, and stops nothing. A line that a full disk or a kill has cut is ended before the next, so it spoils no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import stat
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.policies import Observation
from lbopt.runner.locks import WriterLock
from lbopt.runner.row import StoreError
from lbopt.serving.state import RequestTracker, Sight, WorkerMirror

_DIGEST, _KEY_BYTES = 8, 32
_PERSON = b"lbopt-prefix-1"

#: Hashes of one prompt at most; what is longer is told by its beginning.
MOST_BLOCKS = 4096


class Prefix(NamedTuple):
    """What a prompt begins with.

    Parameters
    ----------
    kind
        ``text`` or ``tokens``.
    size
        Bytes of the prompt.
    hashes
        Hexadecimal, one a full block.
    """

    kind: str
    size: int
    hashes: tuple[str, ...]


class PrefixHasher:
    """Hashes prompts.

    Parameters
    ----------
    key
        32 bytes, see `prefix_key`.
    block
        Bytes of a block.
    """

    __slots__ = ("_key", "block", "fingerprint")

    def __init__(self, key: bytes, block: int) -> None:
        self._key = key
        self.block = block
        self.fingerprint = hashlib.blake2b(b"key", key=key, digest_size=4, person=_PERSON).hexdigest()

    def of(self, body: dict[str, Any], model: str, *, chat: bool) -> Prefix | None:
        """Return what the prompt of a request begins with; None where it has several prompts, or none."""
        found = _chat_bytes(body) if chat else _prompt_bytes(body.get("prompt"), MOST_BLOCKS * self.block)
        if found is None:
            return None
        kind, data, size = found
        state = hashlib.blake2b(f"{kind}:{model}".encode(), key=self._key, digest_size=_DIGEST, person=_PERSON)
        hashes = []
        for begin in range(0, min(len(data) // self.block, MOST_BLOCKS) * self.block, self.block):
            state.update(data[begin : begin + self.block])
            hashes.append(state.copy().hexdigest())
        return Prefix(kind, size, tuple(hashes))

    def __repr__(self) -> str:
        return f"<hasher of prefixes, blocks of {self.block} bytes, key {self.fingerprint}>"


def hasher_of(is_wanted: bool, key: str | os.PathLike[str] | None, block: int) -> PrefixHasher | None:
    """Return the hasher of an installation; None where none is wanted."""
    return PrefixHasher(prefix_key(key), block) if is_wanted else None


def prefix_key(path: str | os.PathLike[str] | None = None) -> bytes:
    """Return the key of the installation, and make it where there is none.

    Parameters
    ----------
    path
        Its file; None = `default_key_path`.

    Raises
    ------
    InputError
        Where it cannot be read or made, is not a key, or may be read by others.
    """
    place = default_key_path() if path is None else Path(path)
    what = f"the key of prefixes '{place}'"
    try:
        _make(place)
        with place.open("rb") as file:
            if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise InputError(f"{what} may be read by others; make it yours alone: chmod 600")
            text = file.read(2 * _KEY_BYTES + 2).strip()
    except OSError as error:
        raise InputError(f"{what} cannot be read or made: {error.strerror or error}; name another prefix_key") from None
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise InputError(f"{what} is not {2 * _KEY_BYTES} hexadecimal digits; remove it, and a new one is made")
    return key


def default_key_path() -> Path:
    """Return the place of the key: ``prefix.key`` in the user's data folder of lbopt."""
    import platformdirs

    return Path(platformdirs.user_data_dir("lbopt")) / "prefix.key"


def _make(place: Path) -> None:
    """Make a key where there is none; of two routers that do so at once one makes it, and both read it whole."""
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(_KEY_BYTES) + "\n")
        try:
            os.link(fresh, place)
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            if not place.exists():
                fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)


def _prompt_bytes(prompt: Any, most: int) -> tuple[str, bytes, int] | None:
    """Return a prompt's kind, its bytes, at least so many if it has them, and their number."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        data = prompt.encode("utf-8", "surrogatepass")
        return "text", data, len(data)
    first = prompt[: -(-most // 4)] if isinstance(prompt, list) else []
    if first and all(type(token) is int for token in first):
        return "tokens", b"".join((token & 0xFFFFFFFF).to_bytes(4, "little") for token in first), 4 * len(prompt)
    return None


def _chat_bytes(body: dict[str, Any]) -> tuple[str, bytes, int] | None:
    """Return tools and messages as one row of bytes; whatever is no text stands as JSON."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return None
    parts = [_as_text(body[name]) for name in ("tools", "functions") if body.get(name)]
    for message in messages:
        if not isinstance(message, dict):
            return None
        others = {name: value for name, value in message.items() if name not in ("role", "content")}
        parts += [str(message.get("role")), _as_text(message.get("content")), _as_text(others) if others else ""]
    data = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return "text", data, len(data)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


FORMAT = "lbopt-decisions"
VERSION = 1
CURRENT = "decisions.jsonl"

_log = logging.getLogger(__name__)

#: Bytes of a file before it is set aside, files that are kept, and rows that may wait for the disk.
ROTATE_AT = 64 * 2**20
KEPT = 16
_MOST_WAITING = 50_000
_PERIOD = 0.5

_ASIDE = "decisions-" + "[0-9]" * 6 + ".jsonl"


class _Decision(NamedTuple):
    seen: Observation
    group: str | None
    workers: list[str]
    decision: NDArray[np.int64]
    rule: str
    seconds: tuple[float, float, float]
    ages: list[float]
    is_shadow: bool


class DecisionRecord:
    """The record of one run of a router.

    Parameters
    ----------
    folder
        Where to write.
    versions
        Of lbopt and of the rules, for the head.
    plan
        The fleet; its addresses are left out.
    prefixes
        What hashes the beginnings of prompts; None = they are left out.
    rotate_at, kept
        Bytes of a file before it is set aside, and files that are kept.
    """

    def __init__(
        self,
        folder: str,
        versions: dict[str, str],
        plan: Any,
        *,
        prefixes: PrefixHasher | None = None,
        rotate_at: int = ROTATE_AT,
        kept: int = KEPT,
    ) -> None:
        self.folder = Path(folder)
        self.lost = 0
        self._rows: list[Any] = []
        self._rotate_at, self._kept = rotate_at, kept
        self._flusher: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._began: float | None = time.time()  # what the next head says; None behind the first
        self._offset: float | None = None
        groups = {group.name: {"slots": group.slots, "model": group.model} for group in plan.groups}
        self._head: dict[str, Any] = {"kind": "head", "format": FORMAT, "version": VERSION, "versions": versions}
        self._head["groups"] = groups
        if prefixes is not None:
            self._head["prefixes"] = {"bytes": prefixes.block, "key": prefixes.fingerprint}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            _, fault = self._append([])
        except OSError as error:
            fault = error
        if fault is not None:
            raise InputError(f"the record cannot be written to '{folder}': {fault.strerror or fault}")

    def _locked(self) -> WriterLock:
        try:
            return WriterLock(self.folder / CURRENT)
        except StoreError:
            raise InputError(
                f"the record folder '{self.folder}' cannot be locked, or another router writes to it; give each router "
                "its own --record"
            ) from None

    def decided(
        self,
        sight: Sight,
        decision: NDArray[np.int64],
        rule: str,
        stages: Any,
        ages: list[float],
        *,
        is_shadow: bool = False,
    ) -> None:
        """Note a decision.

        Parameters
        ----------
        sight, decision
            What the rule saw, and the worker of each position, int64 (n,), -1 = waits.
        stages
            Seconds of its stages.
        ages
            Seconds since each worker was last heard, -1 = never.
        is_shadow
            Whether it was made beside the router that forwards.
        """
        workers = [worker.name for worker in sight.workers]
        seconds = (stages.observe, stages.decide, stages.send)
        group = sight.workers[0].group.name if sight.workers else None  # no tracker is kept: each holds a body
        self._note(_Decision(sight.observation, group, workers, decision, rule, seconds, ages, is_shadow))

    def ended(self, tracker: RequestTracker, worker: WorkerMirror | None) -> None:
        """Note how a request ended."""
        group = None if worker is None else worker.group.name
        name = None if worker is None else worker.name
        row = {"kind": "outcome", "request": tracker.number, "group": group, "worker": name}
        row |= {"prompt": tracker.prompt, "output": tracker.produced, "ending": str(tracker.ending)}
        times = {
            "arrival": tracker.arrived_at,
            "pooled": tracker.pooled_at,
            "start": tracker.dispatched_at,
            "first": tracker.first_at,
            "finish": tracker.ended_at,
        }
        row |= {name: round(value + self._wall(), 6) if value else None for name, value in times.items()}
        ask = getattr(tracker.payload, "ask", None)
        row |= {
            "streams": getattr(ask, "streams", True),
            "attempts": tracker.attempt,
            "recomputations": tracker.recomputations,
        }
        if tracker.sequences > 1:
            row["sequences"] = tracker.sequences
        prefix = getattr(ask, "prefix", None)
        if prefix is not None:
            row |= {"model": tracker.pool.model, "prefix_kind": prefix.kind, "prompt_bytes": prefix.size}
            row["prefix"] = prefix.hashes
        self._note(row)

    async def close(self) -> None:
        """Write what waits."""
        if self._flusher is not None:
            self._flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flusher
        await self._write_waiting()
        self._lock.release()

    def _wall(self) -> float:
        """Return the date, s, at which the clock of the event loop was zero."""
        if self._offset is None:
            self._offset = time.time() - asyncio.get_running_loop().time()
        return self._offset

    def _note(self, row: Any) -> None:
        self._wall()
        if len(self._rows) >= _MOST_WAITING:
            self.lost += 1
            return
        self._rows.append(row)
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD)
            if self._rows:
                await asyncio.shield(self._write_waiting())

    async def _write_waiting(self) -> None:
        async with self._writing:  # one thread at a time, also where the router ends while rows are written
            rows, self._rows = self._rows, []
            whole, fault = await asyncio.to_thread(self._write, rows)
            if fault is not None and not self.lost:
                _log.warning("rows of the record are lost: %s", fault.strerror or fault)
            self.lost += len(rows) - whole

    def _write(self, rows: list[Any]) -> tuple[int, OSError | None]:
        return self._append([self._plain(row) if isinstance(row, _Decision) else row for row in rows])

    def _append(self, rows: list[dict[str, Any]]) -> tuple[int, OSError | None]:
        """Write rows; return how many of them are whole in the file, and why not all. No row asks for a head alone."""
        path, at, head, data = self.folder / CURRENT, 0, b"", b"".join(map(_line, rows))
        try:
            with open(path, "a+b", buffering=0, opener=_private) as stream:
                begin = stream.tell()
                if begin:
                    stream.seek(begin - 1)
                    head = b"" if stream.read(1) == b"\n" else b"\n"
                if not begin or self._began is not None:
                    head += _line(self._head | {"began": self._began})
                data = head + data
                while at < len(data):
                    at += stream.write(data[at:])
                size = stream.tell()
        except OSError as error:
            return data.count(b"\n", len(head), at), error
        self._began = None
        if rows and size > self._rotate_at:
            self._set_aside(path)
        return len(rows), None

    def _set_aside(self, path: Path) -> None:
        """Rename the file, forget the oldest, and begin another with the same head."""
        aside = sorted(self.folder.glob(_ASIDE))
        last = int(aside[-1].stem.rpartition("-")[2]) if aside else 0
        try:
            path.rename(self.folder / f"decisions-{last + 1:06d}.jsonl")
            for old in aside[: max(0, len(aside) + 1 - self._kept)]:
                old.unlink()
        except OSError as error:  # nothing is lost: the file goes on, or an old one stays
            self._rotate_at *= 2
            _log.warning("a file of the record cannot be set aside: %s", error.strerror or error)
        else:
            self._append([])

    def _plain(self, row: _Decision) -> dict[str, Any]:
        seen = row.seen
        observe, decide, send = row.seconds
        return {
            "kind": "decision",
            "at": round(seen.clock + (self._offset or 0.0), 6),
            "group": row.group,
            "rule": row.rule,
            **({"shadow": True} if row.is_shadow else {}),
            "step": seen.step,
            "workers": row.workers,
            "loads": seen.loads.tolist(),
            "free": seen.free_slots.tolist(),
            "running": seen.running.tolist(),
            "queued": seen.queued.tolist(),
            "queued_tokens": seen.queued_tokens.tolist(),
            "ages": [round(age, 4) for age in row.ages],
            "requests": seen.requests.tolist(),
            "sizes": seen.sizes.tolist(),
            "waited": seen.waited.tolist(),
            "chosen": row.decision.tolist(),
            "seconds": {"observe": round(observe, 7), "decide": round(decide, 7), "send": round(send, 7)},
        }


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
