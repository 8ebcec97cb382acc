"""Text without a tokenizer: a token is a word.

A prompt has as many tokens as words between white space, and at least one for 16 bytes. Every token that the mock makes
is one word, so a prompt that is continued by what was made counts the tokens of both. Words have 2 to 9 letters: how
many bytes a token takes differs from prompt to prompt, as it does with real tokenizers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

#: Words that are made, in the order in which a stream walks through them from a place that the prompt decides.
WORDS = (
    *("the", "worker", "holds", "tokens", "and", "every", "step", "waits", "for", "one", "of", "them", "until", "all"),
    *("meet", "at", "a", "barrier", "so", "load", "grows", "by", "request", "while", "slots", "open", "in", "turn"),
    *("where", "prompts", "arrive", "late", "or", "early", "then", "leave", "again", "as", "queues", "drain", "over"),
    *("time", "with", "care", "to", "place", "each", "next", "piece", "on", "less", "busy", "ground", "before", "it"),
    *("joins", "others", "which", "may", "run", "longer", "than", "expected", "today"),
)

_BYTES_OF_A_LONG_TOKEN = 16


def count_tokens(text: str) -> int:
    """Return the tokens of a text."""
    return max(len(text.split()), -(-len(text.encode(errors="replace")) // _BYTES_OF_A_LONG_TOKEN))


def digest(data: bytes) -> int:
    """Return a number that depends on all bytes of a prompt and on nothing else, 0 to 2**64 - 1."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def word(start: int, number: int) -> str:
    """Return token `number` of the answer that begins at `start`."""
    return WORDS[(start + number) % len(WORDS)]


def words(start: int, begin: int, end: int) -> str:
    """Return tokens begin..end-1 of the answer that begins at `start`; each begins with a space."""
    return "".join(f" {word(start, number)}" for number in range(begin, end))


def ids_of(text: str) -> list[int]:
    """Return token numbers for `/tokenize`: equal words have equal numbers."""
    pieces: Sequence[str] = text.split()
    more = count_tokens(text) - len(pieces)
    return [digest(piece.encode()) % 128_000 for piece in pieces] + [0] * more
