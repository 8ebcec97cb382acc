"""The nearest known name, for the message about an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known names, or nothing where none is near."""
    by_lower = {entry.lower(): entry for entry in known}
    word = name.lower()[:100]
    near = get_close_matches(word, by_lower, n=2, cutoff=0.6)
    if not near and word:  # the beginning of a name is near, however long the rest
        near = [entry for entry in by_lower if entry.startswith(word)][:2]
    if not near:
        return ""
    return "; did you mean " + " or ".join(repr(by_lower[entry]) for entry in near) + "?"
