"""The parts of a decode step: attention with its projections, the layer of experts, and the head.

Two ways compute the same: `PlainParts`, plain torch in a wide type, which is the reference and runs anywhere, and
`TritonParts`, kernels that read each active expert's weights once. Projections and attention are torch's own (cuBLAS,
and the faster of cuDNN's and Flash's attention for each batch and context). Some kernels do more than those of engines
(norms add the experts' outputs, one kernel turns heads and fills the cache), so that a step has 11 or 12 launches a
layer where engines have 15 to 20: what is measured is a lower end of what launches cost.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lbopt.hardware.measure.torch_backend import TorchDevice
from tools.expert_step.plan import DecoderShape

EPS = 1e-6


@dataclass(slots=True)
class Weights:
    """Random weights of some layers of a decoder, and a pool of keys and values that its layers use in turn."""

    shape: DecoderShape
    layers: int
    qkv: list[Any]
    output: list[Any]
    router: list[Any]
    gate_up: list[Any]
    down: list[Any]
    gain: Any
    head_gains: Any
    turns: Any
    embedding: Any
    head: Any
    keys: Any
    values: Any

    @classmethod
    def random(
        cls, shape: DecoderShape, layers: int, pool_tokens: int, device: str, dtype: Any, seed: int = 0
    ) -> Weights:
        """Draw weights of variance one over the number of inputs.

        Parameters
        ----------
        layers
            Layers that are held, at most those of the model.
        pool_tokens
            Tokens of one layer's cache that the pool has room for.
        device, dtype
            Where, and in which numbers of torch.
        """
        torch: Any = importlib.import_module("torch")
        source = torch.Generator(device=device).manual_seed(seed)

        def draw(*size: int, inputs: int | None = None) -> Any:
            scale = 1 / math.sqrt(inputs or size[-1])
            return torch.empty(size, dtype=dtype, device=device).normal_(0, scale, generator=source)

        rows = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        angles = torch.arange(shape.head_dim // 2, device=device, dtype=torch.float32)
        return cls(
            shape=shape,
            layers=layers,
            qkv=[draw(rows, shape.hidden) for _ in range(layers)],
            output=[draw(shape.hidden, shape.heads * shape.head_dim) for _ in range(layers)],
            router=[draw(shape.experts, shape.hidden) for _ in range(layers)],
            gate_up=[draw(shape.experts, 2 * shape.width, shape.hidden) for _ in range(layers)],
            down=[draw(shape.experts, shape.hidden, shape.width) for _ in range(layers)],
            gain=torch.ones(shape.hidden, dtype=dtype, device=device),
            head_gains=torch.ones(2 * shape.head_dim, dtype=dtype, device=device),
            turns=torch.cat([torch.cos(angles), torch.sin(angles)]),
            embedding=draw(shape.vocabulary, shape.hidden, inputs=1),
            head=draw(shape.vocabulary, shape.hidden),
            keys=draw(pool_tokens * shape.kv_heads, shape.head_dim, inputs=1),
            values=draw(pool_tokens * shape.kv_heads, shape.head_dim, inputs=1),
        )

    def cache(self, layer: int, requests: int, context: int) -> tuple[Any, Any]:
        """Return the keys and values of a layer, [requests, kv_heads, context, head_dim], without a copy."""
        rows = requests * context * self.shape.kv_heads
        whole = self.keys.shape[0] // rows
        begin = layer % whole * rows
        size = (requests, self.shape.kv_heads, context, self.shape.head_dim)
        return self.keys[begin : begin + rows].view(size), self.values[begin : begin + rows].view(size)


@dataclass(slots=True)
class State:
    """What a step of so many requests works on; `bias` steers which experts are chosen."""

    requests: int
    tokens: Any
    residual: Any
    normed: Any
    bias: Any

    @classmethod
    def of(cls, weights: Weights, requests: int) -> State:
        """Take memory for so many requests."""
        torch: Any = importlib.import_module("torch")
        shape, like = weights.shape, weights.gain
        tokens = torch.arange(requests, device=like.device) * 7919 % shape.vocabulary
        rows = torch.zeros(requests, shape.hidden, dtype=like.dtype, device=like.device)
        bias = torch.zeros(requests, shape.experts, dtype=torch.float32, device=like.device)
        return cls(requests, tokens, rows, torch.zeros_like(rows), bias)


class PlainParts:
    """The same in plain torch, expert by expert; slow, and a reference on every device."""

    name = "plain"

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._torch: Any = importlib.import_module("torch")

    def begin(self, state: State) -> None:
        """Look up the tokens, and norm them."""
        state.residual.copy_(self.weights.embedding[state.tokens])
        self._norm(state, 0)

    def attend(self, state: State, layer: int, context: int) -> None:
        """Add attention over so many tokens a request, the newest among them, to the residual stream."""
        torch, weights, shape = self._torch, self.weights, self.weights.shape
        context = shape.context(layer, context)
        both = shape.heads + shape.kv_heads
        rows = (state.normed @ weights.qkv[layer].T).view(state.requests, -1, shape.head_dim).float()
        turned, values = rows[:, :both], rows[:, both:]
        if shape.normed:
            turned = turned / torch.sqrt((turned**2).mean(-1, keepdim=True) + EPS)
        half = shape.head_dim // 2
        low, high, cosine, sine = turned[..., :half], turned[..., half:], weights.turns[:half], weights.turns[half:]
        turned = torch.cat([low * cosine - high * sine, high * cosine + low * sine], dim=-1)
        keys, cached = weights.cache(layer, state.requests, context)
        keys[:, :, context - 1] = turned[:, shape.heads :].to(keys.dtype)
        cached[:, :, context - 1] = values.to(cached.dtype)
        query = turned[:, : shape.heads].view(state.requests, shape.kv_heads, -1, shape.head_dim)
        scores = torch.softmax(query @ keys.float().transpose(2, 3) / math.sqrt(shape.head_dim), dim=-1)
        out = (scores @ cached.float()).reshape(state.requests, -1).to(state.normed.dtype)
        self._norm(state, out @ weights.output[layer].T)

    def experts(self, state: State, layer: int) -> None:
        """Add what the chosen experts give to the residual stream."""
        torch, weights, shape = self._torch, self.weights, self.weights.shape
        scores = (state.normed @ weights.router[layer].T).float() + state.bias
        best, chosen = torch.topk(scores, shape.experts_per_token, dim=-1)
        shares, total = torch.softmax(best, dim=-1), torch.zeros_like(state.residual, dtype=torch.float32)
        for expert in chosen.unique().tolist():
            request, place = (chosen == expert).nonzero(as_tuple=True)
            gate, up = (state.normed[request] @ weights.gate_up[layer][expert].T).float().chunk(2, dim=-1)
            inner = (torch.nn.functional.silu(gate) * up).to(state.normed.dtype)
            out = (inner @ weights.down[layer][expert].T).float() * shares[request, place, None]
            total.index_add_(0, request, out)
        self._norm(state, total)

    def head(self, state: State) -> Any:
        """Return the token of greatest score of every request."""
        return (state.normed @ self.weights.head.T).argmax(dim=-1)

    def _norm(self, state: State, part: Any) -> None:
        total = state.residual.float() + part
        state.residual.copy_(total)
        state.normed.copy_(total / self._torch.sqrt((total**2).mean(-1, keepdim=True) + EPS) * self.weights.gain)


#: Rows, columns and depth of a block, warps and stages of the two products of experts.
Tiles = tuple[int, int, int, int, int]


class TritonParts:
    """The parts as kernels; the blocks of the products may be chosen for each number of requests."""

    name = "triton"

    def __init__(self, weights: Weights, fastest: Callable[[list[Callable[[], Any]]], int] | None = None) -> None:
        self.weights = weights
        self._torch: Any = importlib.import_module("torch")
        self._kernels: Any = importlib.import_module("tools.expert_step.triton_kernels")
        self._fastest = fastest
        self._ways: dict[tuple[int, int], Callable[..., Any]] = {}
        self._buffers: dict[int, dict[str, Any]] = {}
        self.tiles: dict[int, tuple[Tiles, Tiles]] = {}

    def buffers(self, requests: int) -> dict[str, Any]:
        """Return what the kernels write between them, for so many requests."""
        if requests not in self._buffers:
            torch, shape, like = self._torch, self.weights.shape, self.weights.gain
            pairs = requests * shape.experts_per_token

            def room(*size: int, kind: Any = None) -> Any:
                return torch.zeros(size, dtype=kind or like.dtype, device=like.device)

            self._buffers[requests] = {
                "queries": room(requests, shape.heads, shape.head_dim),
                "chosen": room(pairs, kind=torch.int32),
                "shares": room(pairs, kind=torch.float32),
                "buckets": room(shape.experts, requests, kind=torch.int32),
                "counts": room(shape.experts, kind=torch.int32),
                "expert": room(pairs + shape.experts, kind=torch.int32),
                "place": room(pairs + shape.experts, kind=torch.int32),
                "blocks": room(1, kind=torch.int32),
                "inner": room(pairs, shape.width),
                "outer": room(pairs, shape.hidden),
            }
        return self._buffers[requests]

    def begin(self, state: State) -> None:
        """Look up the tokens, and norm them."""
        state.residual.copy_(self.weights.embedding[state.tokens])
        self._norm(state, self.buffers(state.requests)["outer"], 0)

    def attend(self, state: State, layer: int, context: int) -> None:
        """Add attention over so many tokens a request, the newest among them, to the residual stream."""
        torch, weights, shape = self._torch, self.weights, self.weights.shape
        context, linear = shape.context(layer, context), torch.nn.functional.linear
        queries = self.buffers(state.requests)["queries"]
        keys, values = weights.cache(layer, state.requests, context)
        qkv = linear(state.normed, weights.qkv[layer])
        self._kernels.place_heads[(state.requests, shape.heads + 2 * shape.kv_heads)](
            qkv, queries, keys, values, weights.head_gains, weights.turns, context - 1, keys.stride(0), keys.stride(1),
            EPS, Q=shape.heads, KV=shape.kv_heads, HALF=shape.head_dim // 2, NORMED=shape.normed, num_warps=1,
        )  # fmt: skip
        query = queries.view(state.requests, shape.kv_heads, -1, shape.head_dim)
        out = self._attention(query, keys, values)
        out = linear(out.reshape(state.requests, -1), weights.output[layer])
        self._norm(state, out, 1)

    def experts(self, state: State, layer: int) -> None:
        """Add what the chosen experts give to the residual stream."""
        weights, shape, at = self.weights, self.weights.shape, self.buffers(state.requests)
        first, second = self.tiles[state.requests]
        scores = self._torch.nn.functional.linear(state.normed, weights.router[layer])
        self._kernels.choose[(state.requests,)](
            scores, state.bias, at["chosen"], at["shares"], at["buckets"], at["counts"], state.requests,
            E=shape.experts, K=shape.experts_per_token, num_warps=1,
        )  # fmt: skip
        self._kernels.list_blocks[(1,)](
            at["counts"], at["expert"], at["place"], at["blocks"],
            MOST=-(-state.requests // first[0]), E=shape.experts, ROWS=first[0], num_warps=4,
        )  # fmt: skip
        self.multiply(state, layer, first, second)
        self._norm(state, at["outer"], shape.experts_per_token)

    def multiply(self, state: State, layer: int, first: Tiles, second: Tiles) -> None:
        """Multiply with the chosen experts, from `state.normed` to the buffer of outputs.

        Parameters
        ----------
        first, second
            Blocks of the two products; both have the same rows.
        """
        weights, shape, at = self.weights, self.weights.shape, self.buffers(state.requests)
        pairs = state.requests * shape.experts_per_token
        slots = min(pairs, pairs // first[0] + shape.experts)
        lists = (at["buckets"], at["counts"], at["expert"], at["place"], at["blocks"], state.requests, slots)
        sizes = {"HIDDEN": shape.hidden, "WIDTH": shape.width}
        rows, cols, deep, warps, stages = first
        self._kernels.gate_up[(slots * (shape.width // cols),)](
            state.normed, weights.gate_up[layer], at["inner"], *lists, **sizes, K=shape.experts_per_token,
            ROWS=rows, COLS=cols, DEEP=deep, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        rows, cols, deep, warps, stages = second
        self._kernels.down[(slots * (shape.hidden // cols),)](
            at["inner"], weights.down[layer], at["outer"], at["shares"], *lists, **sizes,
            ROWS=rows, COLS=cols, DEEP=deep, num_warps=warps, num_stages=stages,
        )  # fmt: skip

    def head(self, state: State) -> Any:
        """Return the token of greatest score of every request."""
        return self._torch.nn.functional.linear(state.normed, self.weights.head).argmax(dim=-1)

    def _norm(self, state: State, parts: Any, copies: int) -> None:
        shape = self.weights.shape
        self._kernels.add_norm[(state.requests,)](
            state.residual, parts, self.weights.gain, state.normed, self.buffers(state.requests)["counts"],
            shape.hidden, EPS, COPIES=copies, E=shape.experts, BLOCK=1 << (shape.hidden - 1).bit_length(), num_warps=8,
        )  # fmt: skip

    def _attention(self, query: Any, keys: Any, values: Any) -> Any:
        """Attend by the faster of torch's kernels for this batch and context."""
        attention = self._torch.nn.functional.scaled_dot_product_attention
        key = (query.shape[0], keys.shape[2])
        if key not in self._ways:
            ways = [attention, *TorchDevice(self._torch, str(query.device)).other_kernels(attention)]
            calls: list[Callable[[], Any]] = [partial(way, query, keys, values) for way in ways]
            self._ways[key] = ways[self._fastest(calls)] if self._fastest and len(ways) > 1 else ways[0]
        return self._ways[key](query, keys, values)
