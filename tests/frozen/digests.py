"""Digests of what lbopt writes: one for each column of a table, one for each document.

Integers and text are hashed as they stand, floats by `repr`. A second digest of floats, of 10 significant digits, holds
on machines whose mathematical library rounds a last bit otherwise.
"""

from __future__ import annotations

import csv
import hashlib
import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy

#: Keys of documents that say how long something took, or where and by which version it was made.
OUTSIDE = ("seconds", "versions", "version", "host", "command", "created", "commit", "cpu", "machine")
DIGITS = 10


def machine() -> str:
    """What the last bits of a float may depend on."""
    features = np.show_config(mode="dicts") or {}
    simd = "+".join(features.get("SIMD Extensions", {}).get("found", []))
    library = " ".join(platform.libc_ver())
    return f"{platform.system()} {platform.machine()} {library} SciPy {scipy.__version__} NumPy {np.__version__} {simd}"


def _hash(words: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for word in words:
        sha.update(word.encode() + b"\0")
    return sha.hexdigest()[:16]


def _rounded(word: str) -> str:
    """A float's text with fewer digits; anything else as it stands."""
    if word.lstrip("+-").isdecimal():
        return word
    try:
        return f"{float(word):.{DIGITS}g}"
    except ValueError:
        return word


def digest(words: list[str]) -> str:
    """The exact digest and the rounded one."""
    return f"{_hash(words)} {_hash(map(_rounded, words))}"


def flat(document: Any) -> list[str]:
    """The leaves of a JSON document in order, each with the path to it; what is outside the answer is left out."""
    if isinstance(document, dict):
        return [
            f"{name}:{leaf}" for name, value in sorted(document.items()) if name not in OUTSIDE for leaf in flat(value)
        ] or ["{}"]
    if isinstance(document, list):
        return [leaf for value in document for leaf in flat(value)] or ["[]"]
    return [repr(document)]


def digest_of(document: Any) -> str:
    """The exact and the rounded digest of a JSON document."""
    leaves = flat(document)
    parts = (leaf.rpartition(":") for leaf in leaves)
    return f"{_hash(leaves)} {_hash(f'{head}:{_rounded(last)}' for head, _, last in parts)}"


def same(kept: str | None, now: str | None, on: str) -> bool:
    """Whether a digest is the kept one: exactly on a machine like the one that wrote it, elsewhere when rounded."""
    at = 0 if on == machine() else 1
    return kept is None or (now is not None and kept.split()[at] == now.split()[at])


def keys(document: Any, before: str = "") -> set[str]:
    """Paths of all keys of a document; items of a list share one path."""
    if isinstance(document, dict):
        return {f"{before}{name}" for name in document}.union(*(keys(v, f"{before}{n}.") for n, v in document.items()))
    if isinstance(document, list):
        return set().union(*(keys(value, f"{before}[].") for value in document))
    return set()


def tables(folder: Path) -> dict[str, dict[str, str]]:
    """Every CSV file below a folder: its columns in their order, each with its digests."""
    found = {}
    for path in sorted(folder.rglob("*.csv")):
        with path.open(newline="", encoding="utf-8") as stream:
            header, *rows = list(csv.reader(stream))
        found[path.relative_to(folder).as_posix()] = {
            name: digest([row[at] for row in rows]) for at, name in enumerate(header)
        }
    return found


def documents(folder: Path) -> dict[str, str]:
    """Every JSON and JSONL file below a folder except run.json, with its digests."""
    found = {}
    for path in sorted([*folder.rglob("*.json"), *folder.rglob("*.jsonl")]):
        if path.name != "run.json":
            text = path.read_text(encoding="utf-8")
            content = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
            found[path.relative_to(folder).as_posix()] = digest_of(content)
    return found
