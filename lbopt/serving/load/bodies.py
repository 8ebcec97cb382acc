"""The bodies of requests: prompts of so many words, made without delay when they are due.

All prompts are pieces of one long text of words from 2 to 9 letters, drawn by seed. A piece begins at a word that the
number of the request decides, so prompts differ from their first words on. What a tokenizer makes of them is its
business: the mock counts a word as a token, others some 1.3 tokens a word.
"""

from __future__ import annotations

import json

import numpy as np

from lbopt.model import Trace
from lbopt.serving.load.config import LoadConfig

_LETTERS = np.frombuffer(b"etaoinshrdlucmfwypvbgk", dtype=np.uint8)
_WORDS = 4096


class Bodies:
    """The bodies of the requests of a trace.

    Parameters
    ----------
    trace
        Their lengths.
    config
        How they are asked.
    model
        The model's name.
    """

    def __init__(self, trace: Trace, config: LoadConfig, model: str) -> None:
        longest = int(trace.prompt.max())
        self._trace = trace
        self._text, self._begins = _long_text(config.seed, max(2 * longest, longest + 50_000))
        self._places = self._begins.size - 1 - longest
        options: dict[str, object] = {"model": model, "temperature": 0.0, "stream": config.stream}
        if config.ignore_eos:
            options["ignore_eos"] = True
        if config.stream:
            usage = {"include_usage": True} | ({"continuous_usage_stats": True} if config.continuous_usage else {})
            options["stream_options"] = usage
        head = json.dumps(options)[:-1].encode()
        before = b', "messages": [{"role": "user", "content": "' if config.chat else b', "prompt": "'
        self._before = head + before
        self._after = b'"}], "max_tokens": ' if config.chat else b'", "max_tokens": '

    def of(self, number: int) -> bytes:
        """Return the body of a request."""
        count = max(int(self._trace.prompt[number]), 1)
        first = (number * 7919) % self._places
        prompt = self._text[self._begins[first] : self._begins[first + count] - 1]
        return b"%b%b%b%d}" % (self._before, prompt, self._after, int(self._trace.output[number]))


def _long_text(seed: int, count: int) -> tuple[bytes, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return `count` words with a space after each, and where each of them begins, the end of the text included."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 10, _WORDS)
    known = [bytes(_LETTERS[rng.integers(0, _LETTERS.size, n)]) for n in lengths]
    chosen = rng.integers(0, _WORDS, count)
    begins = np.concatenate(([0], np.cumsum(lengths[chosen] + 1)))
    return b"".join(known[i] + b" " for i in chosen.tolist()), begins
