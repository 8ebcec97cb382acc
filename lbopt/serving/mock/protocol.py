"""What a client asks of an engine, read as vLLM reads it, the words that it gets, and how many.

Only what matters to a router or a load generator is looked at: how long the prompt is, how long the answer may be, how
it is to be sent, and what is handed over between prefill and decode. Unknown fields are accepted and ignored.

Text without a tokenizer: a token is a word.

A prompt has as many tokens as words between white space, and at least one for 16 bytes. Every token that the mock makes
is one word, so a prompt that is continued by what was made counts the tokens of both. Words have 2 to 9 letters: how
many bytes a token takes differs from prompt to prompt, as it does with real tokenizers.

How long an answer is, where the client does not insist on `max_tokens`: drawn by a hash of the prompt.

Equal prompts have equal lengths, whichever worker answers, in whichever order. Names: ``geometric:mean=256``, the
geometric law on 1, 2, ...; ``max-tokens``, always the limit; or a trace or family, whose outputs are drawn from.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.spec import options_of

#: Tokens of an answer to a completion that names no limit, as in OpenAI's interface.
DEFAULT_LIMIT = 16

#: Bytes of a prompt that decide which words its answer is made of.
_HEAD = 8


class BadRequestError(Exception):
    """A request that an engine refuses with status 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request.

    Parameters
    ----------
    chat
        Whether it came to `/v1/chat/completions`.
    model
        As the client calls it.
    prompt_tokens, digest
        Length of the prompt, and what stands for its content.
    start
        Where its answer begins in `WORDS`. It goes by the prompt's first bytes and its length, so that a prompt which
        is continued by the first tokens of its answer gets the tokens that follow.
    limit, least
        Tokens of the answer at most and at least.
    ignore_end
        Whether the answer has exactly `limit` tokens.
    stream, usage_at_end, usage_always
        Whether events are sent, and which of them carry `usage`.
    logprobs
        Alternatives of each token that are asked for; None = none at all.
    tool
        Name of the function that the answer has to call; empty for an answer in text.
    transfer
        `kv_transfer_params`; empty where there are none.
    """

    chat: bool
    model: str
    prompt_tokens: int
    digest: int
    start: int
    limit: int
    least: int
    ignore_end: bool
    stream: bool
    usage_at_end: bool
    usage_always: bool
    logprobs: int | None
    tool: str
    transfer: dict[str, Any]


def read_ask(body: bytes, chat: bool, default_model: str, longest: int) -> Ask:
    """Read the body of a request.

    Parameters
    ----------
    chat
        Whether it is one with messages.
    default_model
        Where the body names no model.
    longest
        Tokens that prompt and answer may have together.

    Raises
    ------
    BadRequestError
        Saying what is wrong with it.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("the body is not JSON") from None
    if not isinstance(given, dict):
        raise BadRequestError("the body is not a JSON object")
    prompt_tokens, content = _chat_prompt(given) if chat else _prompt(given.get("prompt"))
    if prompt_tokens < 1:
        raise BadRequestError("the prompt is empty")
    if given.get("n") not in (None, 1):
        raise BadRequestError("the mock gives one choice a request; leave n out or send 1")
    room = longest - prompt_tokens
    limit = _limit(given, chat, room)
    if limit > room:
        raise BadRequestError(
            f"the prompt has {prompt_tokens} tokens and the answer may have {limit}; together at most {longest}"
        )
    options = given.get("stream_options") or {}
    if not isinstance(options, dict):
        raise BadRequestError("stream_options is not an object")
    transfer = given.get("kv_transfer_params") or {}
    if not isinstance(transfer, dict):
        raise BadRequestError("kv_transfer_params is not an object")
    always = bool(options.get("continuous_usage_stats"))
    return Ask(
        chat=chat,
        model=str(given.get("model") or default_model),
        prompt_tokens=prompt_tokens,
        digest=digest(content),
        start=digest(content[:_HEAD]) % len(WORDS) + prompt_tokens,
        limit=limit,
        least=_count(given, "min_tokens", 0, least=0) or 0,
        ignore_end=bool(given.get("ignore_eos")),
        stream=bool(given.get("stream")),
        usage_at_end=bool(options.get("include_usage")),
        usage_always=always and bool(options.get("include_usage")),
        logprobs=_logprobs(given, chat),
        tool=_tool(given) if chat else "",
        transfer=transfer,
    )


def text_of_messages(messages: Any) -> str:
    """Return the text of a chat's messages, without their roles."""
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("messages is not a list of messages")
    parts = []
    for message in messages:
        if not isinstance(message, dict):
            raise BadRequestError("messages holds something that is not a message")
        content = message.get("content")
        if isinstance(content, list):
            content = " ".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        parts.append(str(content or ""))
    return "\n".join(parts)


def _chat_prompt(given: dict[str, Any]) -> tuple[int, bytes]:
    text = text_of_messages(given.get("messages"))
    return count_tokens(text), text.encode(errors="replace")


def _prompt(prompt: Any) -> tuple[int, bytes]:
    """Return tokens and content of a prompt: a text, token numbers, or a list of one of these."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list):
        if len(prompt) > 1:
            raise BadRequestError(f"the mock answers one prompt a request, and here are {len(prompt)}")
        prompt = prompt[0]
    if isinstance(prompt, str):
        return count_tokens(prompt), prompt.encode(errors="replace")
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        return len(prompt), ",".join(map(str, prompt)).encode()
    raise BadRequestError("prompt is neither text nor token numbers")


def _limit(given: dict[str, Any], chat: bool, room: int) -> int:
    first = "max_completion_tokens" if chat and given.get("max_completion_tokens") is not None else "max_tokens"
    default = max(room, 1) if chat else DEFAULT_LIMIT
    return _count(given, first, default, least=1) or default


def _count(given: dict[str, Any], name: str, default: int, least: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadRequestError(f"{name} is {json.dumps(value)[:40]}; expected an integer of at least {least}")
    return value


def _logprobs(given: dict[str, Any], chat: bool) -> int | None:
    value = given.get("logprobs")
    if chat:
        return _count(given, "top_logprobs", 0, least=0) if value else None
    return None if value is None or value is False else _count(given, "logprobs", 0, least=0)


def _tool(given: dict[str, Any]) -> str:
    """Return the function that has to be called: the first one where any will do."""
    choice, tools = given.get("tool_choice"), given.get("tools")
    if choice == "required" and isinstance(tools, list) and tools:
        choice = tools[0]
    function = choice.get("function") if isinstance(choice, dict) else None
    return str(function.get("name") or "") if isinstance(function, dict) else ""


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


#: From the digest of a prompt to tokens; None = as many as the client allows.
Lengths = Callable[[int], int | None]

#: Requests of a family whose outputs are drawn from.
_DRAWS = 4096


def geometric(mean: float = 256.0) -> Lengths:
    """Return the geometric law: an answer ends after each token with the same chance."""
    if not mean >= 1 or math.isinf(mean):
        raise InputError(f"output lengths 'geometric': mean is {mean:g}; expected at least 1 token")
    stay = math.log1p(-1 / mean) if mean > 1 else -math.inf

    def draw(digest: int) -> int:
        uniform = (digest + 0.5) / 2**64
        return 1 + int(math.log(uniform) / stay)

    return draw


def _up_to_the_limit(_digest: int) -> None:
    """Draw nothing."""


def make_lengths(text: str) -> Lengths:
    """Return the law that `text` names."""
    name, _, rest = text.partition(":")
    if name == "max-tokens":
        return _up_to_the_limit
    if name == "geometric":
        return geometric(**options_of("output lengths", name, rest, geometric))
    from lbopt.instances import families, open_trace

    trace = open_trace(text, count=_DRAWS, seed=0) if text in families.ALL_NAMES else open_trace(text)
    outputs = trace.output.tolist()
    return lambda digest: int(outputs[digest % len(outputs)])
