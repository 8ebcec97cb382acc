"""The bytes of an answer: events of a stream, or one body, in the shape that vLLM gives them.

A stream of a chat begins with an event that carries the role alone. Then an event comes for the tokens of one or more
steps; the last of them carries `finish_reason`, and `stop_reason` is ``recomputed`` where the engine gave the request
up. `usage` is in an event of its own at the end, and in each event with `continuous_usage_stats`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lbopt.serving.mock.group import RECOMPUTED, STOP
from lbopt.serving.mock.protocol import Ask, word, words

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Answer:
    """The answer to one request.

    Parameters
    ----------
    ask
        What was asked.
    name
        Its id.
    created
        s, when it came in.
    """

    ask: Ask
    name: str
    created: int

    @property
    def opening(self) -> bytes:
        """Return the first event of a chat's stream; nothing for a completion."""
        if not self.ask.chat:
            return b""
        delta: dict[str, Any] = {"role": "assistant", "content": ""}
        if self.ask.tool:
            call = {"name": self.ask.tool, "arguments": ""}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": f"call_{self.name}", "type": "function", "function": call}],
            }
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return self._event([choice], self.usage(0) if self.ask.usage_always else None)

    def tokens(self, begin: int, end: int, ended: str) -> bytes:
        """Return the event of tokens begin..end-1; `ended` says why there are no more, or is empty."""
        ask = self.ask
        text = words(ask.start, begin, end)
        if not ended and self._frame is not None:
            return self._framed(text, end)
        choice: dict[str, Any] = {"index": 0}
        if not ask.chat:
            choice["text"] = text
        elif ask.tool:
            text = self._arguments(begin, end, ended)
            choice["delta"] = {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
        else:
            choice["delta"] = {"content": text}
        choice["logprobs"] = self._logprobs(begin, end)
        choice |= self._finish(ended)
        return self._event([choice], self.usage(end) if ask.usage_always else None)

    def closing(self, made: int, transfer: dict[str, Any] | None = None) -> bytes:
        """Return what follows the last tokens: usage where it was asked for, and the end of the stream."""
        usage = self._event([], self.usage(made), transfer) if self.ask.usage_at_end or transfer else b""
        return usage + DONE

    def body(self, made: int, ended: str, transfer: dict[str, Any] | None = None) -> bytes:
        """Return the whole answer as one JSON object."""
        ask = self.ask
        text = words(ask.start, 0, made)
        choice: dict[str, Any] = {"index": 0}
        if not ask.chat:
            choice["text"] = text
        elif ask.tool:
            function = {"name": ask.tool, "arguments": self._arguments(0, made, ended)}
            call = {"id": f"call_{self.name}", "type": "function", "function": function}
            choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
        else:
            choice["message"] = {"role": "assistant", "content": text, "tool_calls": []}
        choice["logprobs"] = self._logprobs(0, made)
        choice |= self._finish(ended)
        kind = "chat.completion" if ask.chat else "text_completion"
        return json.dumps(
            self._head(kind, [choice]) | {"usage": self.usage(made), "kv_transfer_params": transfer}
        ).encode()

    def usage(self, made: int) -> dict[str, Any]:
        """Return the tokens of prompt and answer."""
        prompt = self.ask.prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + made, "completion_tokens": made}

    @cached_property
    def _frame(self) -> tuple[bytes, bytes] | None:
        """What stands before and after the text of an event that is not the last; None where more than text differs.

        Most of the time of a mock goes into such events.
        """
        if self.ask.logprobs is not None or self.ask.tool:
            return None
        text = {"delta": {"content": "\0"}} if self.ask.chat else {"text": "\0"}
        choice: dict[str, Any] = {"index": 0} | text | {"logprobs": None} | self._finish("")
        before, _, after = self._event([choice], None).rpartition(b"\\u0000")
        return before, after.removesuffix(b"}\n\n")

    def _framed(self, text: str, made: int) -> bytes:
        assert self._frame is not None
        before, after = self._frame
        if not self.ask.usage_always:
            return b"%b%b%b}\n\n" % (before, text.encode(), after)
        prompt = self.ask.prompt_tokens
        return b'%b%b%b,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}\n\n' % (
            *(before, text.encode(), after),
            *(prompt, prompt + made, made),
        )

    def _finish(self, ended: str) -> dict[str, Any]:
        reason: str | None = ended or None
        if ended == RECOMPUTED:
            reason = STOP
        elif ended and self.ask.tool:
            reason = "tool_calls"
        return {"finish_reason": reason, "stop_reason": RECOMPUTED if ended == RECOMPUTED else None}

    def _arguments(self, begin: int, end: int, ended: str) -> str:
        """Return the piece of the arguments that these tokens are: one JSON object in all."""
        piece = words(self.ask.start, begin, end)
        return ('{"text": "' if begin == 0 else "") + piece + ('"}' if ended else "")

    def _logprobs(self, begin: int, end: int) -> dict[str, Any] | None:
        """Return made-up log-probabilities: of the token -0.1, of each alternative one less than of the one before."""
        ask = self.ask
        if ask.logprobs is None:
            return None
        made = [words(ask.start, number, number + 1) for number in range(begin, end)]
        others = [
            [" " + word(ask.start, number + k) for k in range(1, ask.logprobs + 1)] for number in range(begin, end)
        ]
        if ask.chat:
            return {
                "content": [
                    {
                        "token": token,
                        "logprob": -0.1,
                        "bytes": list(token.encode()),
                        "top_logprobs": [
                            {"token": other, "logprob": -1.1 - k, "bytes": list(other.encode())}
                            for k, other in enumerate(rest)
                        ],
                    }
                    for token, rest in zip(made, others, strict=True)
                ]
            }
        offset = len(words(ask.start, 0, begin))
        places = []
        for token in made:
            places.append(offset)
            offset += len(token)
        return {
            "tokens": made,
            "token_logprobs": [-0.1] * len(made),
            "text_offset": places,
            "top_logprobs": [
                {token: -0.1} | {other: -1.1 - k for k, other in enumerate(rest)}
                for token, rest in zip(made, others, strict=True)
            ],
        }

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.name,
            "object": kind,
            "created": self.created,
            "model": self.ask.model,
            "choices": choices,
        }

    def _event(
        self, choices: list[dict[str, Any]], usage: dict[str, Any] | None, transfer: dict[str, Any] | None = None
    ) -> bytes:
        kind = "chat.completion.chunk" if self.ask.chat else "text_completion"
        content = self._head(kind, choices)
        if usage is not None:
            content["usage"] = usage
        if transfer is not None:
            content["kv_transfer_params"] = transfer
        return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"
