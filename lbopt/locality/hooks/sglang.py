"""Routed experts of SGLang: captures from its answers.

What SGLang tells. With `--enable-return-routed-experts` an answer to a request with `"return_routed_experts": true` has
the experts of every token but the last, which is sampled and not computed: base64 of int32, (tokens - 1, layers, k), in
`meta_info.routed_experts` of `/generate` and in `sglext.routed_experts` of the answer on OpenAI's paths. The manual has
it as `sgl_ext` on each choice; both are read. A capturer takes the `topk_ids` of every layer in the forward pass and
keeps them by the slots of the KV cache, so that tokens of cached prefixes are told too (`BaseTopkCapturer.capture`,
`get_topk`; its child `RoutedExpertsCapturer` drops fused shared experts). Layers without experts are 0. SGLang's
`ExpertDistributionRecorder` (`python/sglang/srt/eplb/expert_distribution.py`) serves the balancing of experts: its sums
over passes tell no request from another.

With `routed_experts_start_len` an answer begins at a later token; such answers are refused here.

Sources: `python/sglang/srt/entrypoints/openai/protocol.py` (`CompletionResponse`, `ChatCompletionRequest`) at commit
004c82e07d87 and `python/sglang/srt/layers/topk_capturer_base.py` at 6c07f302fe5d of
https://github.com/sgl-project/sglang;
https://docs.sglang.io/docs/basic_usage/openai_api_completions.md (Returning Routed Experts),
https://github.com/sgl-project/sglang/pull/12162, https://github.com/sgl-project/sglang/pull/24403.
No version of SGLang itself was tried: tests use stand-ins of these forms.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.locality.capture import Capture, CaptureBuilder

Rows = NDArray[np.integer[Any]]


def rows_of(answer: dict[str, Any], num_layers: int, experts_per_token: int) -> tuple[Rows, Rows]:
    """Return the experts of the prompt's tokens and of the generated ones, int32 (n, L, k) and (m, L, k).

    Parameters
    ----------
    answer
        JSON of an answer of `/generate`, `/v1/completions` or `/v1/chat/completions`.
    num_layers
        All layers of the model, those without experts included, as `num_hidden_layers` of its configuration says.

    Raises
    ------
    InputError
        If it tells no routed experts, or not those of a whole prompt.
    """
    text, prompt, generated = _found(answer)
    if text is None:
        raise InputError(
            "the answer tells no routed experts; start SGLang with --enable-return-routed-experts and ask for "
            "return_routed_experts"
        )
    if isinstance(text, str):
        try:
            rows = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i4")
        except (binascii.Error, ValueError) as error:
            raise InputError(f"the routed experts of the answer are no base64 of int32 ({error})") from None
        width = num_layers * experts_per_token
        if rows.size % width:
            raise InputError(
                f"the answer tells {rows.size:,} experts, no multiple of {num_layers} layers times {experts_per_token} "
                "of a token; name the model's num_hidden_layers and num_experts_per_tok"
            )
        rows = rows.reshape(-1, num_layers, experts_per_token)
    else:
        rows = np.asarray(text)
    if not isinstance(prompt, int) or isinstance(prompt, bool) or prompt < 1:
        raise InputError(f"the answer says {shown(prompt)} prompt tokens; expected a whole number, 1 or more")
    if len(rows) < prompt or (isinstance(generated, int) and not -1 <= len(rows) - prompt - generated <= 0):
        raise InputError(
            f"the answer tells experts of {len(rows):,} tokens and its prompt has {prompt:,}, with {shown(generated)} "
            "generated; leave out routed_experts_start_len, and let it generate a token or more"
        )
    return rows[:prompt], rows[prompt:]


def capture_answers(
    answers: Sequence[dict[str, Any]],
    num_experts: int,
    *,
    num_layers: int,
    experts_per_token: int,
    model: str = "",
    version: str = "",
) -> tuple[Capture, CaptureBuilder]:
    """Return the capture of finished requests, and the builder, whose `left_out` says what is not in it.

    Parameters
    ----------
    answers
        As of `rows_of`, each of a request.
    num_experts
        Routed experts of a layer.
    num_layers, experts_per_token
        As of `rows_of`.
    model, version
        Names for the file: of the model, and of SGLang's version.
    """
    builder = CaptureBuilder(num_experts, model=model, source=f"sglang {version}".strip())
    for answer in answers:
        builder.add(*rows_of(answer, num_layers, experts_per_token))
    return builder.capture(), builder


def capture_prompts(
    model: str,
    prompts: Sequence[str],
    num_experts: int,
    *,
    num_layers: int,
    experts_per_token: int,
    max_tokens: int = 64,
    **engine: Any,
) -> tuple[Capture, CaptureBuilder]:
    """Run prompts through SGLang in this process, and return the capture and its builder.

    Parameters
    ----------
    model
        Its path, as SGLang calls it.
    prompts
        Calibration prompts.
    num_experts
        Routed experts of a layer.
    num_layers, experts_per_token
        As of `rows_of`.
    max_tokens
        Generated tokens of each.
    engine
        Further arguments of `sglang.Engine`.
    """
    try:
        import sglang
    except ImportError:
        raise InputError(
            "SGLang is not installed here; run this where it is, or capture answers of its server"
        ) from None
    server = sglang.Engine(model_path=model, enable_return_routed_experts=True, **engine)
    try:
        asked = {"max_new_tokens": max_tokens, "temperature": 0.0}
        answers = server.generate(list(prompts), asked, return_routed_experts=True)
    finally:
        server.shutdown()
    return capture_answers(
        answers,
        num_experts,
        num_layers=num_layers,
        experts_per_token=experts_per_token,
        model=model,
        version=str(getattr(sglang, "__version__", "")),
    )


def _found(answer: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the routed experts of an answer, its prompt tokens and the generated ones, as it tells them."""
    about = answer.get("meta_info")
    if isinstance(about, dict):
        return about.get("routed_experts"), about.get("prompt_tokens"), about.get("completion_tokens")
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    places = (answer.get("sglext"), first.get("sglext"), first.get("sgl_ext"), answer.get("sgl_ext"))
    extra = next((place for place in places if isinstance(place, dict)), {})
    usage = answer.get("usage")
    told = usage if isinstance(usage, dict) else {}
    generated = told.get("completion_tokens") if isinstance(choices, list) and len(choices) == 1 else None
    return extra.get("routed_experts"), told.get("prompt_tokens"), generated
