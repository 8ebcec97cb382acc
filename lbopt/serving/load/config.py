"""What is sent, where to, when, and how long an answer is waited for; and the bodies of the requests.

The bodies of requests: prompts of so many words, made without delay when they are due.

All prompts are pieces of one long text of words from 2 to 9 letters, drawn by seed. A piece begins at a word that the
number of the request decides, so prompts differ from their first words on. What a tokenizer makes of them is its
business: the mock counts a word as a token, others some 1.3 tokens a word.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances import families, open_trace
from lbopt.model import Trace
from lbopt.serving.http_client import checked_url
from lbopt.spec import duration
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.requests import COLUMN, by_quantity

#: Requests of a family where no number is given.
DEFAULT_COUNT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadConfig(Configuration):
    """One run of the load generator.

    Parameters
    ----------
    urls
        Where to; several are taken in turn.
    trace, requests, seed, format, named
        What is sent: lengths and times of requests.
    rate
        Mean requests a second, to which the times of the trace are scaled; None keeps them.
    warm_up
        Requests that are to be sent before this time are not measured, such as 30s.
    chat
        Whether requests go to `/v1/chat/completions` instead of `/v1/completions`.
    stream
        Whether answers are streamed.
    ignore_eos
        Whether answers must have the trace's lengths.
    continuous_usage
        Whether `usage` is asked for in every event, so that events of several tokens are counted right.
    model
        None asks the first URL.
    api_key
        Sent as bearer token.
    timeout
        How long an answer may take, such as 600s.
    """

    urls: Annotated[
        tuple[str, ...],
        Option("Where to send, such as http://127.0.0.1:8000; several in turn.", argument=True, empty=True),
    ] = ()
    trace: Annotated[
        str,
        Option(
            "A trace file, a fetched trace, or a family: azure-like, burstgpt-like.",
            names=("--trace", "-t"),
            first=True,
        ),
    ] = "azure-like"
    requests: Annotated[
        int | None,
        Option(
            "How many requests.",
            names=("--requests", "-n"),
            first=True,
            shown=f"all of a file, {DEFAULT_COUNT} of a family",
            low=1,
        ),
    ] = None
    rate: Annotated[
        float | None,
        Option("Mean requests a second.", first=True, shown="the trace's times", low=0, open=True),
    ] = None
    warm_up: Annotated[str, Option("Requests before this time load the server and are not measured.", first=True)] = (
        "0s"
    )
    seed: Annotated[int, Option("Seed of a family, of prompts, and of times where there are none.")] = 0
    format: Annotated[str, Option("Trace format; auto tells it from the content.")] = "auto"
    named: Annotated[tuple[str, ...], COLUMN] = ()
    chat: Annotated[bool, Option("Send chats.", names=("--chat",), first=True)] = False
    stream: Annotated[bool, Option("Stream answers.", names=("--stream/--no-stream",))] = True
    ignore_eos: Annotated[
        bool, Option("Insist on the trace's output lengths.", names=("--ignore-eos/--no-ignore-eos",))
    ] = True
    continuous_usage: Annotated[
        bool,
        Option("Ask for usage in every event.", names=("--continuous-usage/--no-continuous-usage",)),
    ] = True
    model: Annotated[str | None, Option("Name of the model.", shown="asked of the first URL")] = None
    api_key: Annotated[str | None, Option("Sent as bearer token.")] = None
    timeout: Annotated[str, Option("How long an answer may take.", first=True)] = "600s"

    def check(self) -> None:
        """Refuse addresses and durations that are none."""
        if not self.urls:
            raise InputError("nowhere to send requests; give a URL such as http://127.0.0.1:8000")
        _ = self.origins
        duration("warm-up", self.warm_up)
        if self.limit <= 0:
            raise InputError(f"timeout is {self.timeout}; expected more than 0 seconds")

    @property
    def origins(self) -> list[str]:
        """The URLs, checked, without a slash at their ends."""
        return [checked_url(url, "the server") for url in self.urls]

    @property
    def warm_up_seconds(self) -> float:
        """Until when requests are not measured, s."""
        return duration("warm-up", self.warm_up)

    @property
    def limit(self) -> float:
        """How long an answer may take, s."""
        return duration("timeout", self.timeout)

    def open_trace(self) -> Trace:
        """Return the requests."""
        columns = by_quantity(self.named) or None
        is_family = self.trace in families.ALL_NAMES
        count = self.requests or (DEFAULT_COUNT if is_family else None)
        return open_trace(self.trace, count=count, seed=self.seed, format=self.format, columns=columns)

    def times(self, trace: Trace) -> NDArray[np.float64]:
        """Return when each request is to be sent, s from the first one, float64 (N,).

        A trace with times keeps their pattern, scaled so that N requests come at the rate in the mean. One without
        gets a Poisson process.
        """
        if trace.arrival is None:
            if self.rate is None:
                raise InputError(f"trace '{trace.name}' has no arrival times; give --rate")
            gaps = np.random.default_rng(self.seed).exponential(1 / self.rate, len(trace))
            times: NDArray[np.float64] = np.cumsum(gaps) - gaps[0]
            return times
        if self.rate is None or len(trace) == 1:
            return trace.arrival
        if trace.arrival[-1] <= 0:
            raise InputError(f"the requests of trace '{trace.name}' arrive all at once; no rate can scale their times")
        scaled: NDArray[np.float64] = trace.arrival * ((len(trace) - 1) / self.rate / trace.arrival[-1])
        return scaled

    def describe(self) -> dict[str, Any]:
        """Return it as plain data, without the key."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "api_key"}


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
