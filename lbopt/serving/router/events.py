"""Server-sent events counted as they pass: the bytes go on untouched, and what they say of tokens is read.

Events end at an empty line, wherever the network cuts. An event counts as one token, unless it carries usage
(`continuous_usage_stats`, or the last event of a stream), which is exact. Most events are told apart by a search for
a few bytes: a quote inside a JSON text is escaped, so ``"usage":`` in an event is a name and never content. The others
are parsed. vLLM's events say ``"stop_reason":null`` and ``"usage":null``, which tell nothing. An event that differs
from the last one in nothing but its text is not even searched: it has no quote between bytes that were seen before.

Source of the format: WHATWG HTML, section 9.2.6.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: An empty line: two ends of lines, CR LF, LF or CR; a CR at the very end may be half of one.
_END = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r(?!\Z))")
_LINE = re.compile(rb"\r\n|\n|\r")

#: Bytes of one event; of a longer one nothing is read, and it passes all the same.
LARGEST_EVENT = 4 * 2**20


class EventCounter:
    """Reads one stream.

    Parameters
    ----------
    text
        Where the text of the first choice is collected, for an engine that may pre-empt the request; None = nowhere.

    Attributes
    ----------
    tokens
        Counted so far.
    prompt_tokens
        As the engine counted them; None until it says.
    done
        Whether ``[DONE]`` has come.
    finished
        Whether an event named a reason to finish.
    recomputed
        Whether the engine says that it pre-empted the request (`stop_reason` "recomputed").
    error
        Whether the engine has sent an error in an event.
    """

    __slots__ = (
        "_after",
        "_before",
        "_only_usage",
        "_rest",
        "_skipping",
        "_text",
        "done",
        "error",
        "events",
        "finished",
        "prompt_tokens",
        "recomputed",
        "tokens",
    )

    def __init__(self, text: list[str] | None = None) -> None:
        self.tokens = 0
        self.prompt_tokens: int | None = None
        self.done = False
        self.finished = False
        self.recomputed = False
        self.error = False
        self.events = 0
        self._rest = b""
        self._skipping = False
        self._text = text
        self._only_usage = False
        self._before = self._after = b""  # of the text in the last event that told of a token and of nothing else

    def feed(self, chunk: bytes) -> int:
        """Take in bytes from the network, and return how many tokens the events that ended with them add."""
        known = self._before
        if (
            known
            and not (self._rest or self._skipping)
            and chunk.startswith(known)
            and chunk.endswith(self._after)
            and chunk.find(b'"', len(known)) == len(chunk) - len(self._after)
        ):
            self.events += 1
            self.tokens += 1
            return 1
        before = self.tokens
        if not self._rest and chunk[-2:] == b"\n\n" and chunk.find(b"\n\n") == len(chunk) - 2 and b"\r" not in chunk:
            if self._skipping:
                self._skipping = False
            else:
                self._read(chunk[:-2])  # one whole event, as engines send a token
                self._note_shape(chunk, before)
            return self.tokens - before
        data = self._rest + chunk if self._rest else chunk
        events = _END.split(data) if b"\r" in data else data.split(b"\n\n")
        self._rest = events.pop()
        for event in events:
            if self._skipping:
                self._skipping = False
            else:
                self._read(event)
        if len(self._rest) > LARGEST_EVENT:
            self._rest, self._skipping = b"", True
        return self.tokens - before

    def _note_shape(self, chunk: bytes, before: int) -> None:
        """Note what stands around the text of an event that told of one token and of nothing else."""
        self._before = self._after = b""
        if self._text is None and self.tokens == before + 1 and not _tells_more(chunk):
            for name in (b'"text":"', b'"content":"', b'"text": "', b'"content": "'):
                begin = chunk.find(name) + len(name)
                end = chunk.find(b'"', begin)
                if begin >= len(name) and end > 0 and b"\\" not in chunk[begin:end]:
                    self._before, self._after = chunk[:begin], chunk[end:]
                    return

    def sift(self, chunk: bytes, *, without_usage: bool) -> bytes:
        """Take in bytes, and return those of whole events that go to the client.

        Left out are the event by which an engine says that it pre-empted the request, and what follows it, and, where
        the client has not asked for usage, the events that carry nothing else.
        """
        data = self._rest + chunk if self._rest else chunk
        passed, begin = [], 0
        for end in _END.finditer(data):
            self._only_usage = False
            self._read(data[begin : end.start()])
            if self.recomputed:
                break
            if not (without_usage and self._only_usage):
                passed.append(data[begin : end.end()])
            begin = end.end()
        self._rest = data[begin:]
        if len(self._rest) > LARGEST_EVENT:
            passed.append(self.take_rest())
        return b"".join(passed)

    def take_rest(self) -> bytes:
        """Return the bytes of an event that has not ended."""
        rest, self._rest = self._rest, b""
        return rest

    @property
    def is_whole(self) -> bool:
        """Whether the last event has ended."""
        return not self._rest.strip()

    def _read(self, event: bytes) -> None:
        if event[:6] == b"data: " and b"\n" not in event and b"\r" not in event:
            data = event[6:]
        else:
            lines = [line[5:].removeprefix(b" ") for line in _LINE.split(event) if line[:5] == b"data:"]
            if not lines:
                return  # a comment, or an empty line too many
            data = b"\n".join(lines)
        self.events += 1
        if data == b"[DONE]":
            self.done = True
            return
        if self._text is not None or _tells_more(data):
            self._parse(data)
        else:
            self.tokens += 1

    def _parse(self, data: bytes) -> None:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            self.tokens += 1
            return
        if not isinstance(event, dict):
            return
        self.error = self.error or event.get("error") is not None
        made = False
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                if "recomputed" in (choice.get("stop_reason"), choice.get("finish_reason")):
                    self.recomputed = True
                    return  # what it carries has reached nobody, and will be generated again
                made = made or _has_content(choice)
                self.finished = self.finished or choice.get("finish_reason") is not None
                if self._text is not None:
                    self._text.append(_text_of(choice))
        usage = event.get("usage")
        self._only_usage = not choices and isinstance(usage, dict)
        if isinstance(usage, dict):
            prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
            if type(prompt) is int and prompt >= 0:
                self.prompt_tokens = prompt
            if type(completion) is int and completion >= self.tokens:
                self.tokens = completion
                return
        self.tokens += made


def _tells_more(data: bytes) -> bool:
    """Return whether an event may tell more than that a token was made."""
    return (
        b'_reason":"' in data
        or b'_reason": "' in data
        or (b'"usage"' in data and b'"usage":null' not in data and b'"usage": null' not in data)
        or b'"role"' in data
        or b'"error"' in data
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


def error_event(message: str, kind: str) -> bytes:
    """Return an event that tells a client why its stream ends."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return b"data: " + json.dumps(body).encode() + b"\n\n"
