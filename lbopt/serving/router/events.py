"""Server-sent events counted as they pass: whole events go on untouched, and what they say of tokens is read.

Events end at an empty line, wherever the network cuts. An event goes on when it is whole, so a stream that breaks off
never leaves half of one with a client. An event counts as one token, unless it carries usage
(`continuous_usage_stats`, or the last event of a stream), which is exact: engines join tokens that come faster than
they are sent. Usage for which the router has asked, and the client has not, is cut out.

Most events are told apart by a search for a few bytes: a quote inside a JSON text is escaped, so ``"usage":`` in an
event is a name and never content. The others are parsed. vLLM's events say ``"stop_reason":null`` and
``"usage":null``, which tell nothing. An event that differs from the last one in nothing but its text is not even
searched: it has no quote between bytes that were seen before.

A request may make several sequences at once, whose events are told apart by `index`: the usage of an event is that of
its own sequence, as vLLM has it, and the last event has the sum.

Bytes are looked at twice at most, however a stream is cut: once for an end of an event, once when the event is whole.

Source of the format: WHATWG HTML, section 9.2.6.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from lbopt.serving.router.ask import parsed
from lbopt.serving.scrape import EVENT_END, count_of, data_of, usage_of

#: Usage in an event. A quote within a text is escaped, and no text of a token has an object for its value.
_USAGE = re.compile(rb',\s?"usage":\s?\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}')
#: Usage at the end of an event that has choices, as vLLM writes it, with the two counts.
_COUNTS = re.compile(
    rb'(?<!\[\]),"usage":\{"prompt_tokens":(\d{1,9}),"total_tokens":\d{1,9},"completion_tokens":(\d{1,9})\}\}\Z'
)
#: The last events of a response and of messages, which have no ``[DONE]``.
_LAST = ("response.completed", "response.incomplete", "response.failed", "message_stop")
#: Bytes of an empty line that may have come before its last one.
_LONGEST_START = 3

#: Bytes of one event; of a longer one nothing is read, and it passes all the same.
LARGEST_EVENT = 2**20
#: Signs of one answer's text where it is kept: twice as many as the longest context has.
LONGEST_TEXT = 2**25


class EventCounter:
    """Reads one stream.

    Parameters
    ----------
    text
        Where the text of the first choice is collected, for an engine that may pre-empt the request; None = nowhere.
    sequences
        So many are made at once.
    without_usage
        Whether usage is cut out of events, and events of nothing else are held back: the client has not asked for it.

    Attributes
    ----------
    tokens
        Counted so far.
    prompt_tokens
        As the engine counted them; None until it says.
    done
        Whether ``[DONE]`` has come; nothing behind it is read or goes on.
    finished
        Whether an event named a reason to finish.
    recomputed
        Whether the engine says that it pre-empted the request (`stop_reason` "recomputed").
    error
        The status that an error in an event gives, 500 where it gives none; 0 = there was none.
    missed
        Tokens that the first usage told of beyond those that were counted by events.
    is_endless
        Whether more text than any answer has was collected.
    is_torn
        Whether a part of an event has gone on whose end has not come: one that is too long to be held.
    """

    __slots__ = (
        "_after",
        "_before",
        "_fingerprint",
        "_held",
        "_last",
        "_made",
        "_num_kept",
        "_only_usage",
        "_size",
        "_tail",
        "_tells",
        "_text",
        "_without_usage",
        "done",
        "error",
        "events",
        "finished",
        "is_endless",
        "is_torn",
        "missed",
        "prompt_tokens",
        "recomputed",
        "tokens",
    )

    def __init__(
        self,
        text: list[str] | None = None,
        *,
        sequences: int = 1,
        without_usage: bool = False,
    ) -> None:
        self.tokens = 0
        self.prompt_tokens: int | None = None
        self.done = False
        self.finished = False
        self.recomputed = False
        self.error = 0
        self.events = 0
        self.is_torn = False
        self.is_endless = False
        self._num_kept = 0
        self._text = text
        self._made: Counter[int] | None = Counter() if sequences > 1 else None  # by index, where there are several
        self._without_usage = without_usage
        self._fingerprint = (
            b""  # of the engine, as JSON: vLLM has it in the last event of an answer, or in that of usage
        )
        self.missed = 0
        self._only_usage = False
        self._last: tuple[bytes, bytes] | None = None  # the last event of an answer, around its usage
        self._tells = False  # events carry usage
        self._held: list[bytes] = []  # of an event that has not ended
        self._size = 0
        self._tail = b""  # the last bytes of an event that has not ended: its empty line may have begun
        self._before = self._after = b""  # of the text in the last event that told of a token and of nothing else

    def take(self, chunk: bytes) -> bytes:
        """Take in bytes from the network, and return those of the events that are whole now and go to the client.

        Held back are the event by which an engine says that it pre-empted the request, where its text is kept, events
        of mere usage with `without_usage`, and what follows ``[DONE]``.
        """
        known = self._before
        if (
            known
            and not self._tail
            and chunk.startswith(known)
            and chunk.endswith(self._after)
            and chunk.find(b'"', len(known)) == len(chunk) - len(self._after)
            and chunk.find(b"\n", len(known)) == len(chunk) - 2  # no end of a line, and so of an event, in the text
            and chunk.find(b"\r", len(known)) < 0
        ):
            self.events += 1
            self.tokens += 1
            return chunk
        if self._has_ended:
            return b""
        if not self._tail and chunk[-2:] == b"\n\n" and chunk.find(b"\n\n") == len(chunk) - 2 and b"\r" not in chunk:
            before = self.tokens
            passes = self._read(chunk[:-2])  # one whole event, as engines send a token
            self._note_shape(chunk, before)
            return self._sent(chunk, passes)
        return self._take_pieces(chunk)

    def _take_pieces(self, chunk: bytes) -> bytes:
        """Take in bytes that hold no event, half of one, or several."""
        end = EVENT_END.search(self._tail + chunk)
        if end is None:
            return self._hold(chunk)
        passed = []
        if self.is_torn:
            at = end.end() - len(self._tail)
            passed.append(chunk[:at])
            data, self.is_torn = chunk[at:], False
        else:
            data = b"".join((*self._held, chunk))
        self._held, self._size, self._tail = [], 0, b""
        begin = 0
        for end in EVENT_END.finditer(data):
            passes = self._read(data[begin : end.start()])
            passed.append(self._sent(data[begin : end.end()], passes))
            begin = end.end()
            if self._has_ended:
                return b"".join(passed)
        passed.append(self._hold(data[begin:]))
        return b"".join(passed)

    def _sent(self, event: bytes, passes: bool) -> bytes:
        """Return what goes to the client once an event has been read: without usage for which it has not asked.

        The last event of an answer is kept until the next one, where the engine's fingerprint stands.
        """
        if not self._without_usage:
            return event if passes else b""
        last, self._last = self._last, None
        sent = b"" if last is None else self._marked(*last)
        if not passes:
            return sent
        usage = _USAGE.search(event)
        if usage is None:
            return sent + event
        parts = event[: usage.start()], event[usage.end() :]
        if b'h_reason":"' not in event or self._made is not None:
            return sent + b"".join(parts)
        self._last = parts
        return sent

    def _marked(self, begin: bytes, end: bytes) -> bytes:
        """Return the last event of an answer with the fingerprint that it has where no usage follows."""
        return begin + (self._fingerprint and b',"system_fingerprint":' + self._fingerprint) + end

    def _hold(self, data: bytes) -> bytes:
        """Keep bytes of an event that has not ended; return those that are too many to be kept."""
        self._tail = (self._tail + data)[-_LONGEST_START:]
        if self.is_torn:
            return data
        self._held.append(data)
        self._size += len(data)
        if self._size <= LARGEST_EVENT:
            return b""
        self.is_torn, data = True, b"".join(self._held)
        self._held, self._size = [], 0
        return data

    @property
    def is_empty(self) -> bool:
        """Whether the stream has ended with nothing in it."""
        return self.done and self.events == 1

    def take_rest(self) -> bytes:
        """Return the bytes of an event that has no empty line behind it, at the end of a stream that is whole."""
        rest, self._held, self._size, self._tail = b"".join(self._held), [], 0, b""
        if rest[-1:] in (b"\n", b"\r"):
            self._read(rest.rstrip(b"\r\n"))
        last, self._last = self._last, None
        return rest if last is None else self._marked(*last) + rest

    @property
    def _has_ended(self) -> bool:
        """Whether nothing more of the stream is for the client."""
        return self.done or (self.recomputed and self._text is not None)

    def _note_shape(self, chunk: bytes, before: int) -> None:
        """Note what stands around the text of an event that told of one token and of nothing else."""
        self._before = self._after = b""
        is_plain = self.tokens == before + 1 and not _tells_more(chunk) and chunk.find(b"\n") == len(chunk) - 2
        if self._text is None and self._made is None and is_plain:
            for name in (b'"text":"', b'"content":"', b'"text": "', b'"content": "'):
                begin = chunk.find(name) + len(name)
                end = chunk.find(b'"', begin)
                if begin >= len(name) and end > 0 and b"\\" not in chunk[begin:end]:
                    self._before, self._after = chunk[:begin], chunk[end:]
                    return

    def _read(self, event: bytes) -> bool:
        """Read an event; returns whether it goes to the client."""
        data = data_of(event)
        if data is None:
            return True  # a comment, or an empty line too many
        self.events += 1
        self._only_usage = False
        if data == b"[DONE]":
            self.done = True
            self._before = b""
        elif self._text is not None or self._made is not None:
            self._parse(data)
        elif (counts := _COUNTS.search(data)) is not None and not _tells_more(data[: counts.start()]):
            self.prompt_tokens = count_of(int(counts[1]))
            self._count(count_of(int(counts[2])), True)
        elif _tells_more(data):
            self._parse(data)
        else:
            self.tokens += 1
        if self.recomputed and self._text is not None:
            return False
        return not (self._without_usage and self._only_usage)

    def _count(self, told: int | None, made: bool) -> None:
        """Count what the usage of an event tells, or whether it made a token."""
        if told is None or told < self.tokens:
            self.tokens += made
            return
        if self._only_usage and not self._tells:
            self.missed = told - self.tokens
        self._tells = True
        self.tokens = told

    def _parse(self, data: bytes) -> None:
        try:
            event = parsed(data)
        except (ValueError, RecursionError):
            self.tokens += 1
            return
        if not isinstance(event, dict):
            return
        if event.get("error") is not None:
            self.error = self.error or code_of(event["error"]) or 500
        made, index = False, None  # of the one choice that an event of several sequences has
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                if "recomputed" in (choice.get("stop_reason"), choice.get("finish_reason")):
                    self.recomputed = True
                    return  # what it carries has reached no client, and will be generated again
                made, index = made or _has_content(choice), choice.get("index")
                self.finished = self.finished or choice.get("finish_reason") is not None
                if choice.get("finish_reason") in ("abort", "error"):  # no client asked for that
                    self.error = self.error or 500
                if self._text is not None:
                    self._text.append(_text_of(choice))
                    self._num_kept += len(self._text[-1])
                    self.is_endless = self._num_kept > LONGEST_TEXT
        kind = event.get("type")
        if isinstance(kind, str):  # of a response or of messages
            made = kind.endswith("delta") and kind != "message_delta"
            self.finished = self.finished or kind in _LAST
            if kind == "response.failed":
                self.error = self.error or 500
            event = next((event[name] for name in ("message", "response") if isinstance(event.get(name), dict)), event)
        self._only_usage = not choices and isinstance(event.get("usage"), dict)
        usage = usage_of(event)
        if usage.prompt is not None and (self._made is None or not choices):  # else of one prompt of several
            self.prompt_tokens = usage.prompt
            if self._only_usage and isinstance(event.get("system_fingerprint"), str):
                self._fingerprint = json.dumps(event["system_fingerprint"]).encode()
        if self._made is None or not choices:
            self._count(usage.made, made)
        elif isinstance(index, int):
            before, told = self._made[index], usage.made or 0
            self._made[index] = told if told >= before and told else before + made
            self.tokens += self._made[index] - before


def _tells_more(data: bytes) -> bool:
    """Return whether an event may tell more than that a token was made."""
    return (
        b'_reason":"' in data
        or b'_reason": "' in data
        or (b'"usage"' in data and b'"usage":null' not in data and b'"usage": null' not in data)
        or b'"role"' in data
        or b'"error"' in data
        or ((b'"type":"' in data or b'"type": "' in data) and b'delta"' not in data)
    )


def _has_content(choice: dict[str, Any]) -> bool:
    """Return whether a choice of an event carries something that was generated."""
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return False
    return any(value for key, value in delta.items() if key != "role")


def _text_of(choice: dict[str, Any]) -> str:
    """Return the text of a choice of an event."""
    delta = choice.get("delta")
    text = delta.get("content") if isinstance(delta, dict) else choice.get("text")
    return text if isinstance(text, str) else ""


def code_of(error: Any) -> int:
    """Return the status that an error of an engine names; 0 where it names none."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int and 400 <= code < 600 else 0
