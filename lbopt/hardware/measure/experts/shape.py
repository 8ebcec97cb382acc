"""The decoder whose step is measured: its sizes, and the bytes that each part of a step must read."""

from __future__ import annotations

from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.hardware.cards.catalogue import model_card

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
