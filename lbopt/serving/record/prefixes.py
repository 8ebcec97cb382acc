"""What prompts begin with, told by keyed hashes: equal ones are seen to be equal, and nothing is said of their words.

A prompt is a row of bytes: the text of a completion, tools and messages of a chat in their order, or four bytes a token
where a client sends tokens. Its hash number j is BLAKE2b, keyed, of the model and of the first (j + 1) * `block` bytes,
cut to eight bytes: equal hashes mean equal prompts up to there, as hashes of caches of prefixes do. Bytes beyond the
last full block have none.

Without the key words cannot be tried until a hash fits. The key is the installation's: a file that only its owner may
read, made once, kept apart from records, and written into none of them. A record holds the key's own fingerprint, by
which two records of one installation are known to be comparable.

Source of the function: RFC 7693; of hashes that include all before: the manual of `lbopt.model.trace`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any, NamedTuple

from lbopt.exceptions import InputError

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
