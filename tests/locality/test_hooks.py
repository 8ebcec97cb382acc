"""Captures from what engines tell, by stand-ins of the forms in which they tell it."""

import asyncio
import base64
import io
import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.locality import MoEShape, counts_as_text, counts_of_text, fit_routing, read_capture, write_capture
from lbopt.locality.capture import CaptureBuilder
from lbopt.locality.hooks import sglang, vllm

E, K = 12, 3


def rows(tokens, seed, layers=(1, 1, 1)):
    """Experts of tokens, (tokens, layers, K); zeros in a layer without experts."""
    rng = np.random.default_rng(seed)
    chosen = rng.random((tokens, len(layers), E)).argsort(axis=2)[:, :, :K].astype(np.int16)
    return chosen * np.array(layers, dtype=np.int16)[:, None]


def naive_counts(found):
    """Counts of rows, token by token."""
    counts = np.zeros((found.shape[1], E), dtype=int)
    for token in found:
        for layer, experts in enumerate(token):
            for expert in experts:
                counts[layer, expert] += 1
    return counts


REQUESTS = [(rows(5 + r, r), rows(4, 100 + r)) for r in range(6)]


def expect(capture, source):
    """The capture of `REQUESTS`, whoever told them."""
    assert (capture.source, capture.shape) == (source, MoEShape(3, E, K)) and len(capture.counts) == 6
    for r, (prompt, made) in enumerate(REQUESTS):
        assert np.array_equal(capture.counts[r], naive_counts(prompt))
        assert np.allclose(capture.decode[r], naive_counts(made) / len(made))


def split(prompt, made):
    """An output of vLLM 0.21."""
    return SimpleNamespace(prompt_routed_experts=prompt, outputs=[SimpleNamespace(routed_experts=made)])


def together(prompt, made):
    """An output of vLLM 0.14 to 0.20."""
    return SimpleNamespace(
        prompt_token_ids=list(range(len(prompt))),
        outputs=[SimpleNamespace(routed_experts=np.concatenate([prompt, made]))],
    )


def as_json(prompt, made):
    """An answer of vLLM's server."""
    return {"prompt_routed_experts": prompt.tolist(), "choices": [{"routed_experts": made.tolist()}]}


def as_file(prompt, made, **more):
    """An answer of vLLM after 0.21: the last generated token has no row."""
    stream = io.BytesIO()
    np.save(stream, np.concatenate([prompt, made]).astype(np.uint8))
    text = base64.b64encode(stream.getvalue()).decode()
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(made) + 1}
    return {"choices": [{"routed_experts": text, **more}], "usage": usage}


def with_ids(prompt, made):
    """The same where token ids were asked for, and usage is of more than one prompt."""
    answer = as_file(prompt, made, prompt_token_ids=list(range(len(prompt))), token_ids=list(range(len(made) + 1)))
    answer["choices"].append(answer["choices"][0])
    answer["usage"] = {"prompt_tokens": 1000, "completion_tokens": 1000}
    return answer


@pytest.mark.parametrize("form", [split, together, as_json, as_file, with_ids])
def test_outputs_of_vllm(form, tmp_path):
    capture, builder = vllm.capture_outputs([form(*r) for r in REQUESTS], E, model="m", version="0.21.0")
    expect(capture, "vllm 0.21.0")
    assert not builder.left_out
    write_capture(capture, tmp_path / "c.npz")
    back = read_capture(tmp_path / "c.npz")
    expect(back, "vllm 0.21.0")
    assert back.model == "m" and fit_routing(back, 2, starts=1).table.model == "m"


def test_prompts_run_through_vllm(monkeypatch):
    """With a module of the same names in its place."""
    seen = {}

    class LLM:
        def __init__(self, model, enable_return_routed_experts, **more):
            seen.update(model=model, enabled=enable_return_routed_experts, more=more)

        def generate(self, prompts, params):
            seen.update(prompts=prompts, params=params.given)
            return [split(*request) for request in REQUESTS]

    class SamplingParams:
        def __init__(self, **given):
            self.given = given

    module = ModuleType("vllm")
    module.LLM, module.SamplingParams, module.__version__ = LLM, SamplingParams, "0.21.0"
    monkeypatch.setitem(sys.modules, "vllm", module)
    capture, _ = vllm.capture_prompts("qwen", ["a", "b"], E, max_tokens=4, tensor_parallel_size=2)
    expect(capture, "vllm 0.21.0")
    assert seen == {
        "model": "qwen",
        "enabled": True,
        "more": {"tensor_parallel_size": 2},
        "prompts": ["a", "b"],
        "params": {"max_tokens": 4, "temperature": 0.0},
    }


def generated(prompt, made):
    """An answer of SGLang's /generate: the last token is sampled and has no row."""
    flat = base64.b64encode(np.concatenate([prompt, made]).astype("<i4").tobytes()).decode()
    return {"text": "x", "meta_info": {"prompt_tokens": len(prompt), "routed_experts": flat}}


def completed(prompt, made):
    """An answer of its OpenAI paths."""
    told = generated(prompt, made)["meta_info"]
    return {
        "choices": [{"text": "x", "sgl_ext": {"routed_experts": told["routed_experts"]}}],
        "usage": {"prompt_tokens": told["prompt_tokens"]},
    }


def extended(prompt, made):
    """The same as the source has it: beside the choices."""
    told = generated(prompt, made)["meta_info"]
    return {
        "choices": [{"text": "x"}],
        "sglext": {"routed_experts": told["routed_experts"]},
        "usage": {"prompt_tokens": told["prompt_tokens"]},
    }


@pytest.mark.parametrize("form", [generated, completed, extended])
def test_answers_of_sglang(form):
    answers = [form(*r) for r in REQUESTS]
    capture, _ = sglang.capture_answers(answers, E, num_layers=3, experts_per_token=K, version="0.5.19")
    expect(capture, "sglang 0.5.19")


def test_prompts_run_through_sglang(monkeypatch):
    seen = {}

    class Engine:
        def __init__(self, model_path, enable_return_routed_experts, **more):
            seen.update(model=model_path, enabled=enable_return_routed_experts, more=more)

        def generate(self, prompts, sampling_params, return_routed_experts):
            seen.update(prompts=prompts, params=sampling_params, asked=return_routed_experts)
            return [generated(*request) for request in REQUESTS]

        def shutdown(self):
            seen["ended"] = True

    module = ModuleType("sglang")
    module.Engine, module.__version__ = Engine, "0.5.19"
    monkeypatch.setitem(sys.modules, "sglang", module)
    capture, _ = sglang.capture_prompts("qwen", ["a"], E, num_layers=3, experts_per_token=K, tp_size=2)
    expect(capture, "sglang 0.5.19")
    assert seen["enabled"] is seen["asked"] is seen["ended"] is True and seen["more"] == {"tp_size": 2}


def test_engines_are_imported_on_use_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setitem(sys.modules, "sglang", None)
    with pytest.raises(InputError, match="vLLM is not installed here"):
        vllm.capture_prompts("m", [], E)
    with pytest.raises(InputError, match="SGLang is not installed here"):
        sglang.capture_prompts("m", [], E, num_layers=3, experts_per_token=K)


def test_layers_without_experts_are_left_out():
    builder = CaptureBuilder(E)
    builder.add(rows(5, 1, (0, 1, 1)), rows(4, 2, (0, 1, 1)))
    assert builder.capture().shape == MoEShape(2, E, K)
    assert np.array_equal(builder.capture().counts[0], naive_counts(rows(5, 1)[:, 1:] * 1))
    some = CaptureBuilder(E, layers=[2])
    some.add(rows(5, 1), rows(4, 2), domain=3)
    assert np.array_equal(some.capture().counts[0], naive_counts(rows(5, 1)[:, 2:]))
    assert some.capture().domain.tolist() == [3]


def test_requests_that_tell_too_little_are_left_out():
    builder = CaptureBuilder(E)
    cached = rows(5, 1)
    cached[0] = -1
    assert builder.add(cached, rows(4, 2)) == "with tokens whose experts are not known"
    assert builder.add(rows(5, 1), rows(0, 2)) == "without a generated token"
    assert builder.add(rows(0, 1), rows(4, 2)) == "without rows of the prompt"
    assert sum(builder.left_out.values()) == 3 and len(builder) == 0
    with pytest.raises(
        InputError, match=r"no request was taken down \(1 with tokens whose experts are not known, 1 with"
    ):
        builder.capture()
    assert builder.add(rows(5, 1), rows(4, 2)) == "" and len(builder) == 1


TWICE = rows(5, 1)
TWICE[2, 1] = 7


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: CaptureBuilder(E).add(np.ones((2, 3)), rows(4, 2)), r"rows of prompt are of shape \(2, 3\)"),
        (lambda: CaptureBuilder(E).add(rows(5, 1), np.ones((4, 3, K))), "rows of decode are of shape .* float64"),
        (lambda: CaptureBuilder(E).add(TWICE, rows(4, 2)), "chose"),
        (lambda: CaptureBuilder(4).add(rows(5, 1), rows(4, 2)), "expected 0 to 3"),
        (lambda: CaptureBuilder(E).add(rows(5, 1, (0, 0, 0)), rows(4, 2, (0, 0, 0))), "all rows are 0"),
        (
            lambda: CaptureBuilder(E).add(rows(5, 1), rows(4, 2, (1, 1))),
            r"have \(3, 3\) and \(2, 3\) layers and experts",
        ),
        (lambda: CaptureBuilder(E, layers=[5]).add(rows(5, 1), rows(4, 2)), r"layer mask is \[5\]"),
        (lambda: CaptureBuilder(E).count(rows(5, 1)), "no request has been taken down yet"),
        (lambda: vllm.rows_of({"choices": [{"text": "x"}]}), "start vLLM with --enable-return-routed-experts"),
        (lambda: vllm.rows_of({"choices": []}), "has no completion"),
        (lambda: vllm.rows_of({"choices": [{"routed_experts": [[[1]]]}]}), "the end of the prompt is unknown"),
        (lambda: vllm.rows_of(["x"]), "has no completion"),
        (lambda: vllm.rows_of({"choices": {"a": 1}}), "has no completion"),
        (lambda: vllm.rows_of({"choices": [{"routed_experts": "!"}]}), "are no rows of experts"),
        (lambda: vllm.rows_of({"choices": [{"routed_experts": "aGVsbG8="}]}), "are no rows of experts"),
        (lambda: vllm.rows_of({"choices": [{"routed_experts": [[[1], [1, 2]]]}]}), "are no rows of experts"),
        (
            lambda: vllm.rows_of(as_file(*REQUESTS[0]) | {"usage": {"prompt_tokens": 90}}),
            "of 90 of the prompt and None generated; leave out routed_experts_prompt_start",
        ),
        (
            lambda: vllm.rows_of(as_file(*REQUESTS[0]) | {"usage": {"prompt_tokens": 5, "completion_tokens": 8}}),
            "experts of 9 tokens, of 5 of the prompt and 8 generated; leave out routed_experts_prompt_start",
        ),
        (
            lambda: vllm.rows_of(as_file(*REQUESTS[0]) | {"choices": as_file(*REQUESTS[0])["choices"] * 2}),
            "the end of the prompt is unknown",
        ),
        (lambda: sglang.rows_of({"choices": ["x"], "usage": 3}, 3, K), "tells no routed experts"),
        (lambda: sglang.rows_of({"meta_info": {}}, 3, K), "start SGLang with --enable-return-routed-experts"),
        (lambda: sglang.rows_of(generated(*REQUESTS[0]), 4, K), "no multiple of 4 layers times 3"),
        (
            lambda: sglang.rows_of({"meta_info": {"prompt_tokens": 9, "routed_experts": "!"}}, 3, K),
            "no base64 of int32",
        ),
        (
            lambda: sglang.rows_of({"meta_info": {"prompt_tokens": 9, "routed_experts": ""}}, 3, K),
            "experts of 0 tokens and its prompt has 9, with None generated; leave out routed_experts_start_len",
        ),
        (lambda: sglang.rows_of({"meta_info": {"routed_experts": ""}}, 3, K), "says None prompt tokens"),
        (
            lambda: sglang.rows_of(
                {"meta_info": generated(*REQUESTS[0])["meta_info"] | {"completion_tokens": 9}}, 3, K
            ),
            "experts of 9 tokens and its prompt has 5, with 9 generated; leave out routed_experts_start_len",
        ),
    ],
)
def test_errors(act, words):
    with pytest.raises(InputError, match=words):
        act()


def test_some_domains_are_refused():
    builder = CaptureBuilder(E)
    builder.add(*REQUESTS[0], domain=1)
    with pytest.raises(InputError, match="some requests have a domain and some have none"):
        builder.add(*REQUESTS[1])


# -- the header of vLLM's answers


def through(answer, path="/v1/completions", content=b"application/json", parts=1, status=200):
    """Send an answer through the middleware; returns headers and body as the client gets them."""
    body = json.dumps(answer).encode() if not isinstance(answer, bytes) else answer
    step = -(-len(body) // parts)
    pieces = [body[i : i + step] for i in range(0, len(body), step)]

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", content)]})
        for i, piece in enumerate(pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": i < len(pieces) - 1})

    sent = []

    async def send(message):
        sent.append(message)

    middleware = vllm.ExpertsHeader(app, num_experts=E)
    asyncio.run(middleware({"type": "http", "path": path}, None, send))
    assert b"".join(message.get("body", b"") for message in sent) == body
    assert [message["type"] for message in sent].count("http.response.start") == 1
    return dict(sent[0]["headers"])


@pytest.mark.parametrize("parts", [1, 7])
def test_answers_of_vllm_get_a_header_that_the_router_reads(parts):
    prompt, made = REQUESTS[0]
    text = through(as_json(prompt, made), parts=parts)[b"x-lbopt-experts"].decode()
    assert np.array_equal(counts_of_text(text, MoEShape(3, E, K), np.arange(3)), naive_counts(prompt))
    assert through(as_file(prompt, made), parts=parts)[b"x-lbopt-experts"].decode() == text
    dense = as_json(rows(5, 1, (0, 1, 1)), made)
    text = through(dense)[b"x-lbopt-experts"].decode()
    assert text == counts_as_text(naive_counts(rows(5, 1)[:, 1:]))


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        ({"choices": [{"text": "x"}]}, {}),
        (as_json(rows(5, 1) - 20, rows(4, 2)), {}),
        (b"no json", {}),
        (b"[" * 100_000, {}),
        (["x"], {}),
        ({"choices": {"a": 1}}, {}),
        ({"choices": [{"routed_experts": "!"}], "usage": {"prompt_tokens": 3}}, {}),
        ({"choices": [{"routed_experts": [[1, 2], [3]]}], "usage": {"prompt_tokens": 1}}, {}),
        ({"choices": [{"routed_experts": "x", "prompt_token_ids": 7}]}, {}),
        (as_json(*REQUESTS[0]), {"path": "/v1/models"}),
        (as_json(*REQUESTS[0]), {"content": b"text/event-stream"}),
        (as_json(*REQUESTS[0]), {"status": 400}),
    ],
)
def test_other_answers_pass_as_they_are(answer, more):
    assert b"x-lbopt-experts" not in through(answer, **more)


def test_the_middleware_needs_the_number_of_experts(monkeypatch):
    monkeypatch.delenv("LBOPT_NUM_EXPERTS", raising=False)
    with pytest.raises(InputError, match="LBOPT_NUM_EXPERTS is ''; expected the routed experts of a layer"):
        vllm.ExpertsHeader(lambda *_: None)
    monkeypatch.setenv("LBOPT_NUM_EXPERTS", "128")
    assert vllm.ExpertsHeader(lambda *_: None)._num_experts == 128
