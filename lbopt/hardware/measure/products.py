"""The matrix products of one layer in decode: what a worker multiplies per step beside attention, by its requests.

A layer's weights are read once a step, however few requests run; its arithmetic grows with them. So seconds stay flat
while memory binds and grow once arithmetic does. What is timed is the layer as a model card describes it: projections
of attention (keys and values of latent attention in absorbed form, a product per head), the dense or shared
feed-forward part, and the experts. Activations, norms and the choice of experts are left out, as in the roofline.

Experts: every expert of the layer multiplies `ceil(n k / E)` tokens, as it would with n requests whose k of E choices
are even. A layer with more than 4 GB of routed experts (DeepSeek-V3: 22.5 GB) is spread over devices in serving; its
experts are left out, and the row says so.

Whole layers, attention and then the products, are timed too where the model's attention is among the shapes: they tell
whether the two add up.

Beside the layers, one large square product gives the rate of matrix arithmetic that the device reaches at best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.cards.model import ModelCard
from lbopt.hardware.measure.attention import SHAPES, AttentionShape, Point, in_turn, pool_tokens, whole_blocks
from lbopt.hardware.measure.backend import Backend
from lbopt.hardware.measure.timing import Estimate, Progress, Samples, Work, median, take_samples

if TYPE_CHECKING:
    from lbopt.hardware.measure.measurement import MeasureConfig

#: Routed experts of a layer above that are not timed.
MOST_EXPERT_BYTES = 4e9
#: Edge of the square product: for a processor and for an accelerator.
HOST_EDGE, ACCELERATOR_EDGE = 1024, 8192


@dataclass(frozen=True, slots=True)
class Product:
    """Tokens of width `inputs` times `copies` matrices of (inputs, outputs); a copy meets `share` of the requests."""

    name: str
    inputs: int
    outputs: int
    copies: int = 1
    share: float = 1.0

    @property
    def parameters(self) -> int:
        """Weights of all copies."""
        return self.copies * self.inputs * self.outputs

    def tokens(self, requests: int) -> int:
        """Return the tokens that each copy multiplies."""
        return math.ceil(self.share * requests - 1e-9)

    def flops(self, requests: int) -> int:
        """Return the floating-point operations with so many requests."""
        return 2 * self.parameters * self.tokens(requests)


@dataclass(frozen=True, slots=True)
class Layer:
    """The products of one layer of a model; `left_out` are parameters of routed experts that are not among them."""

    model: str
    products: tuple[Product, ...]
    left_out: int = 0

    @property
    def parameters(self) -> int:
        """Weights that are read."""
        return sum(product.parameters for product in self.products)

    def flops(self, requests: int) -> int:
        """Return the floating-point operations with so many requests."""
        return sum(product.flops(requests) for product in self.products)


@dataclass(frozen=True, slots=True)
class LayerStep:
    """A layer's attention over `tokens` resident tokens of `batch` requests, then its products: seconds together."""

    batch: int
    tokens: int
    seconds: Estimate


@dataclass(slots=True)
class LayerTimes:
    """Seconds of a layer's products by requests: `batches` are those that have samples, with their `medians`.

    `samples` go by the places of `grid`, then the square product, then the whole layers of `places`, whose times are
    `steps`.
    """

    layer: Layer
    itemsize: int
    grid: list[int]
    places: list[Point]
    batches: list[int]
    samples: Samples
    medians: list[Estimate]
    edge: int
    square: Estimate | None = None
    steps: list[LayerStep] = field(default_factory=list)

    @property
    def num_bytes(self) -> int:
        """Bytes of weights."""
        return self.layer.parameters * self.itemsize

    def bandwidth(self, place: int) -> Estimate:
        """Return the bytes of weights per second at one place of `batches`."""
        return self.medians[place].rate(self.num_bytes)

    def flops_rate(self, place: int) -> Estimate:
        """Return the floating-point operations per second at one place of `batches`."""
        return self.medians[place].rate(self.layer.flops(self.batches[place]))

    def square_rate(self) -> Estimate | None:
        """Return the floating-point operations per second of the square product."""
        return None if self.square is None else self.square.rate(2 * self.edge**3)


def layer_products(model: ModelCard, itemsize: int) -> Layer:
    """Return the products of one layer; of a model with dense layers and others, one with experts."""
    hidden, heads, head = model["hidden"], model["heads"], model["head_dim"]
    if model.attention == "mla":
        rope, latent, rank, value = model["rope_dim"], model["kv_latent"], model["query_rank"], model["value_dim"]
        found = [
            Product("queries, down", hidden, rank),
            Product("queries, up", rank, heads * (head + rope)),
            Product("latent", hidden, latent + rope),
            Product("keys of a head", head, latent, heads),
            Product("values of a head", latent, value, heads),
            Product("output", heads * value, hidden),
        ]
    else:
        found = [
            Product("queries, keys, values", hidden, (heads + 2 * model["kv_heads"]) * head),
            Product("output", heads * head, hidden),
        ]
    if not model.moe_layers:
        return Layer(model.name, (*found, *_gated("feed-forward", hidden, model["dense_width"])))
    experts, width = model["experts"], model["expert_width"]
    found.append(Product("router", hidden, experts))
    if model["shared_experts"]:
        found += _gated("shared experts", hidden, width * model["shared_experts"])
    routed = _gated("experts", hidden, width, experts, model["experts_per_token"] / experts)
    parameters = sum(product.parameters for product in routed)
    if parameters * itemsize > MOST_EXPERT_BYTES:
        return Layer(model.name, tuple(found), parameters)
    return Layer(model.name, (*found, *routed))


def measure_layer(
    layer: Layer,
    config: MeasureConfig,
    backend: Backend,
    *,
    most: int,
    seconds: float,
    rng: np.random.Generator,
    now: Callable[[], float],
    progress: Progress,
) -> LayerTimes:
    """Time a layer's products at every batch size, the square product, and whole layers, all in the same rounds.

    Parameters
    ----------
    most
        Resident tokens of the largest whole layer.
    now
        Clock, seconds.

    Raises
    ------
    InputError
        The weights do not fit, or the budget does not suffice for one round.
    """
    need, free = 1.1 * layer.parameters * backend.itemsize, backend.free_bytes()
    if free is not None and need > free:
        raise InputError(
            f"a layer of {layer.model} has {need / 1e9:,.2f} GB of weights in {backend.dtype}, and {backend.device} "
            f"has {free / 1e9:,.2f} GB free; take a smaller --model, or --no-products"
        )
    grid = sorted(config.layer_batches)
    multiply = backend.multiply(layer.products)
    edge = HOST_EDGE if backend.is_host else ACCELERATOR_EDGE
    square = backend.multiply((Product("square", edge, edge),))
    calls = [multiply(batch) for batch in grid] + [square(edge)]
    works: list[Work] = [lambda _, call=call: call() for call in calls]  # type: ignore[misc]
    places = whole_layers(layer, config.layer_batches, most)
    works += _in_sequence(SHAPES[layer.model], places, multiply, backend) if places else []
    samples = take_samples(
        f"layer of {layer.model}",
        works,
        backend,
        seconds=seconds,
        target=config.target,
        rng=rng,
        now=now,
        progress=progress,
    )
    seen = [place for place in range(len(grid)) if len(samples.of(place))]
    squares = samples.of(len(grid))
    return LayerTimes(
        layer=layer,
        itemsize=backend.itemsize,
        grid=grid,
        places=places,
        batches=[grid[place] for place in seen],
        samples=samples,
        medians=[median(samples.of(place), rng) for place in seen],
        edge=edge,
        square=median(squares, rng) if len(squares) else None,
        steps=[
            LayerStep(place.batch, place.tokens, median(times, rng))
            for work, place in enumerate(places, start=len(calls))
            if len(times := samples.of(work))
        ],
    )


def whole_layers(layer: Layer, batches: Sequence[int], most: int) -> list[Point]:
    """Return the batches and resident tokens at which attention and products are timed in one call.

    They are 8 and 64 requests where products are timed at these, with a sixteenth, a quarter and all of `most` tokens;
    none where the model's attention is not among the shapes.
    """
    if layer.model not in SHAPES:
        return []
    return [
        Point(batch, context)
        for batch in (8, 64)
        if batch in batches
        for context in sorted({whole_blocks(most // (batch * part)) for part in (16, 4, 1)})
    ]


def _in_sequence(
    shape: AttentionShape,
    places: list[Point],
    multiply: Callable[[int], Callable[[], object]],
    backend: Backend,
) -> list[Work]:
    """Return a call per place: attention over the next stretch of the pool, then the products."""
    pool = pool_tokens(shape, backend, max(place.tokens for place in places))
    decode = backend.decode(shape, pool)
    found = []
    for place in places:
        attend = in_turn(decode, (place.context,) * place.batch, pool)
        found.append(_both(attend, multiply(place.batch)))
    return found


def _both(attend: Work, multiply: Callable[[], object]) -> Work:
    def run(call: int) -> None:
        attend(call)
        multiply()

    return run


def _gated(name: str, hidden: int, width: int, copies: int = 1, share: float = 1.0) -> list[Product]:
    """Return a gated feed-forward part: gate and up in one product, then down."""
    return [
        Product(f"{name}, gate and up", hidden, 2 * width, copies, share),
        Product(f"{name}, down", width, hidden, copies, share),
    ]
