"""Routed experts of vLLM: captures from its outputs, and a header for its answers.

What vLLM tells. With `--enable-return-routed-experts` (`LLM(..., enable_return_routed_experts=True)`) every answer has
the experts of every token, as logical numbers: the routers' `select_experts` hands its `topk_ids` to a capturer before
EPLB maps them to physical experts (`vllm/model_executor/layers/fused_moe`: `BaseRouter.set_capture_fn`,
`RoutedExpertsCapturer.capture`). EPLB's own `expert_load_view` holds sums over tokens: no request is told from another.

- After 0.21: a choice's `routed_experts` is text, base64 of a NumPy file (.npy): uint8, uint16 or int32, (tokens - 1,
  layers, k), prompt and generated tokens together without the last, which was sampled and not computed. Where the
  prompt ends, `usage.prompt_tokens` says, or `prompt_token_ids` where the request asks for `return_token_ids`. Answers
  to a request with `routed_experts_prompt_start` begin later and are refused. Chunks of a stream tell no experts.
- 0.21: `RequestOutput.prompt_routed_experts`, int16 (prompt tokens, MoE layers, k), and of each completion
  `routed_experts`, (generated tokens, MoE layers, k); the same names in JSON, as lists. Prompt tokens that were found
  in the cache of prefixes are -1.
- 0.14 to 0.20: `CompletionOutput.routed_experts` alone, (tokens, layers, k), prompt and generated tokens together, with
  zeros for layers that have no experts.

`vllm serve --middleware MODULE.NAME` imports a class and adds it by `app.add_middleware`, with the application as its
only argument (or a coroutine, as an HTTP middleware).

Sources: `CompletionResponseChoice` and `CompletionRequest` in `vllm/entrypoints/openai/completion/protocol.py`, commit
002032ee2b18 of https://github.com/vllm-project/vllm; `build_app` in
https://docs.vllm.ai/en/v0.16.0/api/vllm/entrypoints/openai/api_server/;
https://docs.vllm.ai/en/v0.21.0/training/routed_experts_replay/ and
https://docs.vllm.ai/en/v0.14.0/api/vllm/model_executor/layers/fused_moe/routed_experts_capturer/; the latest form and
its limits (it needs the cache of prefixes on, and goes not with pipeline parallelism or connectors that move blocks
between engines): https://docs.vllm.ai/en/latest/training/routed_experts/; what brought it:
https://github.com/vllm-project/vllm/pull/28284. No version of vLLM itself was tried: tests use stand-ins of its forms.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.locality.capture import Capture, CaptureBuilder
from lbopt.locality.wire_form import rows_as_text

Rows = NDArray[np.integer[Any]]
Message = dict[str, Any]

_HEADER = b"x-lbopt-experts"
#: Answers that are longer are passed on without the header.
_LARGEST = 64 * 2**20


def rows_of(output: Any) -> tuple[Rows, Rows]:
    """Return the experts of the prompt's tokens and of the generated ones, int (n, L, k) and (m, L, k).

    Parameters
    ----------
    output
        A `RequestOutput` of vLLM, or the JSON of an answer of its server as a dictionary. Of several completions the
        first is taken.

    Raises
    ------
    InputError
        If it tells no routed experts, or not those of a whole prompt.
    """
    completions = _field(output, "outputs") or _field(output, "choices")
    first = _first(completions)
    made, prompt = _field(first, "routed_experts"), _field(output, "prompt_routed_experts")
    if made is None:
        raise InputError("the output tells no routed experts; start vLLM with --enable-return-routed-experts")
    rows = _array(made)
    if prompt is not None:
        return _array(prompt), rows
    tokens = _field(output, "prompt_token_ids") or _field(first, "prompt_token_ids")
    made_ids = _field(first, "token_ids")
    number, generated = (len(one) if isinstance(one, list | tuple) else None for one in (tokens, made_ids))
    usage = _field(output, "usage")
    if usage is not None and len(completions) == 1:  # else it is of all of them
        number = _field(usage, "prompt_tokens") if number is None else number
        generated = _field(usage, "completion_tokens") if generated is None else generated
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(
            "the output tells experts of prompt and answer together and neither prompt_token_ids nor usage, so the "
            "end of the prompt is unknown; ask for return_token_ids"
        )
    if len(rows) < number or (isinstance(generated, int) and not -1 <= len(rows) - number - generated <= 0):
        raise InputError(
            f"the output tells experts of {len(rows):,} tokens, of {number:,} of the prompt and {shown(generated)} "
            "generated; leave out routed_experts_prompt_start"
        )
    return rows[:number], rows[number:]


def capture_outputs(
    outputs: Sequence[Any], num_experts: int, *, model: str = "", version: str = ""
) -> tuple[Capture, CaptureBuilder]:
    """Return the capture of finished requests, and the builder, whose `left_out` says what is not in it.

    Parameters
    ----------
    outputs
        As of `rows_of`, each of a request.
    num_experts
        Routed experts of a layer.
    model, version
        Names for the file: of the model, and of vLLM's version.
    """
    builder = CaptureBuilder(num_experts, model=model, source=f"vllm {version}".strip())
    for output in outputs:
        builder.add(*rows_of(output))
    return builder.capture(), builder


def capture_prompts(
    model: str, prompts: Sequence[str], num_experts: int, *, max_tokens: int = 64, **engine: Any
) -> tuple[Capture, CaptureBuilder]:
    """Run prompts through vLLM in this process, and return the capture and its builder.

    Parameters
    ----------
    model
        As vLLM calls it.
    prompts
        Calibration prompts.
    num_experts
        Routed experts of a layer.
    max_tokens
        Generated tokens of each.
    engine
        Further arguments of `vllm.LLM`.
    """
    try:
        import vllm
    except ImportError:
        raise InputError("vLLM is not installed here; run this where it is, or capture answers of its server") from None
    llm = vllm.LLM(model=model, enable_return_routed_experts=True, **engine)
    outputs = llm.generate(list(prompts), vllm.SamplingParams(max_tokens=max_tokens, temperature=0.0))
    return capture_outputs(outputs, num_experts, model=model, version=str(getattr(vllm, "__version__", "")))


class ExpertsHeader:
    """ASGI middleware that adds what a prompt did to the experts to answers, as `lbopt serve` reads it.

    `vllm serve MODEL --enable-return-routed-experts --middleware lbopt.locality.hooks.vllm.ExpertsHeader`

    Of answers that are JSON and no stream, whose chunks tell no experts. The number of
    experts is that of the environment variable LBOPT_NUM_EXPERTS.

    Parameters
    ----------
    app
        The application.
    num_experts
        Routed experts of a layer; None = as the environment says.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], num_experts: int | None = None) -> None:
        self._app = app
        text = os.environ.get("LBOPT_NUM_EXPERTS", "")
        if num_experts is None and not text.isdigit():
            raise InputError(f"LBOPT_NUM_EXPERTS is {text!r}; expected the routed experts of a layer, such as 128")
        self._num_experts = int(text) if num_experts is None else num_experts

    async def __call__(self, scope: Message, receive: Any, send: Callable[[Message], Awaitable[None]]) -> None:
        """Pass a request on, and hold its answer until its experts are known."""
        if scope.get("type") != "http" or not str(scope.get("path", "")).endswith("/completions"):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        parts: list[bytes] = []

        async def hold(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                if _is_json(message):
                    start = message
                else:
                    await send(message)
                return
            if start is None:
                await send(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body") and sum(map(len, parts)) <= _LARGEST:
                return
            begun, start = start, None
            body = b"".join(parts)
            text = "" if message.get("more_body") else self._text(body)
            if text:
                begun = begun | {"headers": [*begun.get("headers", []), (_HEADER, text.encode("ascii"))]}
            await send(begun)
            await send(message | {"body": body})

        await self._app(scope, receive, hold)

    def _text(self, body: bytes) -> str:
        """Return the header of an answer; "" where it tells nothing that could be used."""
        try:
            prompt, _ = rows_of(json.loads(body))
            return rows_as_text(prompt, self._num_experts)
        except (InputError, ValueError, RecursionError):
            return ""


def _is_json(message: Message) -> bool:
    headers = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", [])}
    return message.get("status") == 200 and headers.get(b"content-type", b"").startswith(b"application/json")


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _first(things: Any) -> Any:
    if not isinstance(things, list | tuple) or not things:
        raise InputError("the output has no completion; expected a finished request")
    return things[0]


def _array(told: Any) -> Rows:
    """Return rows that are told as an array, as lists, or as base64 of a NumPy file."""
    try:
        if isinstance(told, str):
            return np.asarray(np.lib.format.read_array(io.BytesIO(base64.b64decode(told, validate=True))))
        rows = np.asarray(told)
    except (ValueError, EOFError, MemoryError) as error:
        raise InputError(f"the routed experts of the output are no rows of experts ({str(error)[:200]})") from None
    return rows
