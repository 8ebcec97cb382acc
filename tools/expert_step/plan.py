"""The decoder whose step is measured, and which of its steps are timed.

The decoder whose step is measured: its sizes, and the bytes that each part of a step must read.

Which steps are timed: requests, contexts and active experts of each part; and who chooses which expert.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import model_card
from lbopt.hardware.step_time.barrier_form import expected_active

#: Bytes of a number: weights and cache are bfloat16.
ITEMSIZE = 2
#: What no card says of these models, from their published configurations: whether queries and keys are normed, and how
#: many tokens every second layer attends to.
_NORMED = ("qwen3-30b-a3b",)
_WINDOWS = {"gpt-oss-120b": 128}


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """Sizes of a decoder with experts in every layer.

    Parameters
    ----------
    name
        The model's card.
    layers, hidden, heads, kv_heads, head_dim, experts, experts_per_token, width, vocabulary
        As in the model's configuration; `width` is that of an expert.
    normed
        Whether each head's query and key are normed.
    window
        Tokens that every second layer attends to; None where all layers attend to all.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int
    experts_per_token: int
    width: int
    vocabulary: int
    normed: bool = True
    window: int | None = None

    @classmethod
    def of(cls, model: str) -> DecoderShape:
        """Return the shape of a model card with experts and grouped attention."""
        card = model_card(model)
        if not card["experts"] or card.attention != "gqa" or card["dense_layers"] or card["shared_experts"]:
            raise InputError(
                f"model '{model}' has other layers than those that are measured here: grouped attention and routed "
                "experts in every layer; qwen3-30b-a3b and gpt-oss-120b have"
            )
        return cls(
            name=model,
            layers=card["layers"],
            hidden=card["hidden"],
            heads=card["heads"],
            kv_heads=card["kv_heads"],
            head_dim=card["head_dim"],
            experts=card["experts"],
            experts_per_token=card["experts_per_token"],
            width=card["expert_width"],
            vocabulary=card["vocabulary"],
            normed=model in _NORMED,
            window=_WINDOWS.get(model),
        )

    @property
    def expert_bytes(self) -> int:
        """Bytes of the weights of one expert."""
        return 3 * self.hidden * self.width * ITEMSIZE

    @property
    def attention_bytes(self) -> int:
        """Bytes of the projections of one layer."""
        return (2 * self.heads + 2 * self.kv_heads) * self.head_dim * self.hidden * ITEMSIZE

    @property
    def head_bytes(self) -> int:
        """Bytes of the output layer."""
        return self.vocabulary * self.hidden * ITEMSIZE

    @property
    def token_bytes(self) -> int:
        """Bytes of the keys and values of one token in one layer."""
        return 2 * self.kv_heads * self.head_dim * ITEMSIZE

    def context(self, layer: int, tokens: int) -> int:
        """Return the tokens that a request of so many attends to in a layer."""
        return tokens if self.window is None or layer % 2 else min(tokens, self.window)


#: Parts that are timed by themselves, and the step that has them all.
PARTS = ("experts", "attention", "head", "step")


@dataclass(frozen=True, slots=True)
class Place:
    """One thing to time: a part over so many requests.

    Parameters
    ----------
    part
        Of `PARTS`.
    requests
        Running requests.
    context
        Tokens of each, the newest among them; 0 where the part does not see them.
    active
        Distinct experts of a layer; 0 where the part has none.
    generalists
        Experts that every request uses; the others are spread evenly.
    """

    part: str
    requests: int
    context: int = 0
    active: int = 0
    generalists: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the places are made of.

    Parameters
    ----------
    requests, contexts, active
        Numbers that are combined where they can be; the most resident tokens of a layer are `most_tokens`.
    most_tokens
        As it says.
    """

    requests: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    contexts: tuple[int, ...] = (512, 1024, 2048, 4096, 8192)
    active: tuple[int, ...] = (8, 16, 24, 32, 48, 64, 80, 96, 112, 128)
    most_tokens: int = 1 << 20


def places(shape: DecoderShape, sizes: Sizes) -> list[Place]:
    """Return everything that is timed of a decoder; a step is timed with the experts of even use and with fewer."""
    chosen = shape.experts_per_token
    found = [
        Place("experts", requests, 0, active, 0)
        for requests in sizes.requests
        for active in sizes.active
        if chosen <= active <= min(shape.experts, chosen * requests)
    ]
    few = chosen // 2
    found += [
        Place("experts", one.requests, 0, one.active, few)
        for one in found
        if one.active >= 2 * chosen and one.active - few <= (chosen - few) * one.requests
    ]
    contexts = [
        (requests, context)
        for requests in sizes.requests
        for context in sizes.contexts
        if requests * context <= sizes.most_tokens
    ]
    found += [Place("attention", requests, context) for requests, context in contexts]
    found += [Place("head", requests) for requests in sizes.requests]
    for requests, context in contexts:
        if context in sizes.contexts[::2]:
            even = round(float(expected_active(np.array(requests), shape.experts, chosen)))
            found += [Place("step", requests, context, active) for active in {even, max(chosen, round(0.6 * even))}]
    return found


def choices(place: Place, shape: DecoderShape, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the experts of each request, (requests, chosen): exactly `place.active` different ones.

    Generalists are among all requests' experts; the others follow each other in a random order, so that each is used
    by as many requests as any other, within one.

    Parameters
    ----------
    shape
        Experts, and how many of them a request uses.
    """
    experts = rng.permutation(shape.experts)[: place.active]
    common, rest = experts[: place.generalists], experts[place.generalists :]
    free = shape.experts_per_token - place.generalists
    turn = np.arange(place.requests * free).reshape(place.requests, free) % max(1, len(rest))
    return np.concatenate([np.broadcast_to(common, (place.requests, len(common))), rest[turn]], axis=1).astype(np.int64)


def steering(chosen: NDArray[np.int64], experts: int) -> NDArray[np.float32]:
    """Return what is added to the gate's scores so that these experts are taken, (requests, experts)."""
    bias = np.zeros((len(chosen), experts), dtype=np.float32)
    np.put_along_axis(bias, chosen, 100.0, axis=1)
    return bias
