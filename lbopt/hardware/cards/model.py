"""A model card: the integers of one architecture, each with its entry in the config file, and what follows from them.

Parameters are those of the matrices; norms, biases and quantisation scales are left out, below 0.1 % of the whole. A
gated feed-forward layer has three matrices (gate, up, down), so 3 * hidden * width parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.quantity import Quantity, check_entries, check_known, read_quantities
from lbopt.kinds import whole

#: The integers of an architecture; those that a card leaves out are 0.
ARCHITECTURE: dict[str, str] = {
    "layers": "transformer layers",
    "cached_layers": "of them those whose cache grows with every token; 0 where all do",
    "hidden": "width of the residual stream",
    "heads": "query heads",
    "kv_heads": "heads whose keys and values are cached (gqa)",
    "head_dim": "width of a head; of its part without rotation (mla)",
    "value_dim": "width of a value head (mla)",
    "rope_dim": "rotary part that is cached beside the latent vector (mla)",
    "kv_latent": "latent vector of keys and values that is cached (mla)",
    "query_rank": "rank of the query projection (mla)",
    "dense_layers": "layers with a dense feed-forward part",
    "dense_width": "its width",
    "experts": "routed experts of a layer",
    "experts_per_token": "of them used by a token",
    "shared_experts": "experts of a layer that every token uses",
    "expert_width": "width of an expert",
    "vocabulary": "tokens of the vocabulary, embedding and output head not tied",
}

#: What a card says beside the integers: unit and meaning.
QUANTITIES: dict[str, tuple[str, str]] = {
    "kv_bytes": ("B", "one cached value"),
    "weight_bytes": ("B", "one parameter; of the experts alone where common_bytes is given"),
    "common_bytes": ("B", "one parameter outside of the experts, where it differs"),
    "total_parameters": ("1", "parameters as its authors count them"),
    "active_parameters": ("1", "parameters used by a token as its authors count them"),
}

ATTENTIONS = ("gqa", "mla")
_ALWAYS = ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocabulary")
_OF_LATENT = ("value_dim", "rope_dim", "kv_latent", "query_rank")
_OF_EXPERTS = ("experts_per_token", "expert_width")


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model.

    Parameters
    ----------
    name, title
        As users type it, and in full.
    attention
        "gqa": grouped queries, keys and values of `kv_heads` heads are cached. "mla": multi-head latent attention.
    architecture
        Integers by the names of `ARCHITECTURE`.
    entries
        For each of them, its entry in the config file.
    source
        Address of the config file.
    quantities
        By the names of `QUANTITIES`.
    note
        What else a reader must know.
    """

    name: str
    title: str
    attention: str
    architecture: Mapping[str, int]
    entries: Mapping[str, str]
    source: str
    quantities: Mapping[str, Quantity]
    note: str = ""

    def __post_init__(self) -> None:
        if self.attention not in ATTENTIONS:
            raise InputError(f"model card '{self.name}': attention '{self.attention}'; expected gqa or mla")
        needed = [*_ALWAYS, *(_OF_LATENT if self.attention == "mla" else ())]
        if self["experts"]:
            needed += _OF_EXPERTS
        for name in needed:
            if not self[name]:
                raise InputError(f"model card '{self.name}' has no {name} ({ARCHITECTURE[name]}); add it to the card")
        if self["experts_per_token"] > self["experts"]:
            raise InputError(
                f"model card '{self.name}': experts_per_token is {self['experts_per_token']}, more than the "
                f"{self['experts']} experts"
            )
        if self["cached_layers"] > self["layers"]:
            raise InputError(
                f"model card '{self.name}': cached_layers is {self['cached_layers']} of {self['layers']} layers; "
                "expected at most that"
            )
        if self["dense_layers"] > self["layers"] or (not self["experts"] and self["dense_layers"] != self["layers"]):
            raise InputError(
                f"model card '{self.name}': dense_layers is {self['dense_layers']} of {self['layers']} layers; "
                "expected at most that, and all of them in a model without experts"
            )
        for name in ("kv_bytes", "weight_bytes"):
            if name not in self.quantities or self.quantities[name].low <= 0:
                raise InputError(f"model card '{self.name}' has no {name}, or not above 0 B")

    def __getitem__(self, integer: str) -> int:
        """Return an integer of the architecture, 0 where the card leaves it out."""
        if integer not in ARCHITECTURE:
            raise KeyError(integer)
        return self.architecture.get(integer, 0)

    @property
    def moe_layers(self) -> int:
        """Layers with routed experts: layers - dense_layers, or none."""
        return self["layers"] - self["dense_layers"] if self["experts"] else 0

    @property
    def growing_layers(self) -> int:
        """Layers whose cache grows with every token: all, or cached_layers of a hybrid model."""
        return self["cached_layers"] or self["layers"]

    @property
    def kv_values_per_token(self) -> int:
        """Cached values of a token: (kv_latent + rope_dim) or 2 * kv_heads * head_dim, times growing_layers."""
        if self.attention == "mla":
            return (self["kv_latent"] + self["rope_dim"]) * self.growing_layers
        return 2 * self["kv_heads"] * self["head_dim"] * self.growing_layers

    @property
    def attention_flops(self) -> int:
        """FLOP per cached token and query token.

        Scores and weighted values, two products of two FLOP each: 4 * heads * head_dim * growing_layers. With latent
        attention in absorbed form the scores are taken over kv_latent + rope_dim and the values over kv_latent:
        2 * heads * (kv_latent + rope_dim + kv_latent) * growing_layers.
        """
        if self.attention == "mla":
            return 2 * self["heads"] * (2 * self["kv_latent"] + self["rope_dim"]) * self.growing_layers
        return 4 * self["heads"] * self["head_dim"] * self.growing_layers

    @property
    def attention_parameters(self) -> int:
        """Projections of one layer.

        gqa: hidden * (2 * heads + 2 * kv_heads) * head_dim. mla: queries hidden * query_rank + query_rank * heads *
        (head_dim + rope_dim), latent hidden * (kv_latent + rope_dim), keys and values kv_latent * heads *
        (head_dim + value_dim), output heads * value_dim * hidden.
        """
        hidden, heads, head = self["hidden"], self["heads"], self["head_dim"]
        if self.attention == "gqa":
            return 2 * hidden * (heads + self["kv_heads"]) * head
        latent, rope, rank, value = self["kv_latent"], self["rope_dim"], self["query_rank"], self["value_dim"]
        queries = hidden * rank + rank * heads * (head + rope)
        return queries + hidden * (latent + rope) + latent * heads * (head + value) + heads * value * hidden

    @property
    def expert_parameters(self) -> int:
        """One expert of one layer: 3 * hidden * expert_width."""
        return 3 * self["hidden"] * self["expert_width"]

    @property
    def common_parameters(self) -> int:
        """What every worker reads in every step, whatever its tokens are.

        Attention of all layers, dense feed-forward parts, shared experts, routers (hidden * experts a layer) and the
        output head (vocabulary * hidden). Of the embedding only some rows are read: it is left out.
        """
        of_experts = self["shared_experts"] * self.expert_parameters + self["hidden"] * self["experts"]
        return (
            self["layers"] * self.attention_parameters
            + self["dense_layers"] * 3 * self["hidden"] * self["dense_width"]
            + self.moe_layers * of_experts
            + self["vocabulary"] * self["hidden"]
        )

    @property
    def common_bytes(self) -> Quantity:
        """Bytes of a parameter outside of the experts: `common_bytes` of the card, else `weight_bytes`."""
        return self.quantities.get("common_bytes", self.quantities["weight_bytes"])

    @property
    def total_parameters(self) -> int:
        """common_parameters + embedding (vocabulary * hidden) + all experts of all layers."""
        experts = self.moe_layers * self["experts"] * self.expert_parameters
        return self.common_parameters + self["vocabulary"] * self["hidden"] + experts

    @property
    def active_parameters(self) -> int:
        """common_parameters + embedding + experts_per_token experts of each layer that has them."""
        experts = self.moe_layers * self["experts_per_token"] * self.expert_parameters
        return self.common_parameters + self["vocabulary"] * self["hidden"] + experts

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str) -> ModelCard:
        """Read a card from what a TOML file holds; `source` is the file's name, for errors."""
        what = f"model card '{source}'"
        wanted: dict[str, type] = {
            "name": str,
            "title": str,
            "attention": str,
            "source": str,
            "architecture": dict,
            "quantities": dict,
        }
        check_entries(what, data, wanted, ("note",))
        check_known(what, "integer", data["architecture"], ARCHITECTURE)
        check_known(what, "quantity", data["quantities"], QUANTITIES)
        integers, entries = {}, {}
        for name, given in data["architecture"].items():
            integers[name], entries[name] = _integer(f"{what}: {name}", given)
        quantities = read_quantities(what, data["quantities"], {name: unit for name, (unit, _) in QUANTITIES.items()})
        return cls(
            name=data["name"],
            title=data["title"],
            attention=data["attention"],
            architecture=integers,
            entries=entries,
            source=data["source"],
            quantities=quantities,
            note=data.get("note", ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads."""
        integers = {name: {"value": value, "source": self.entries[name]} for name, value in self.architecture.items()}
        data = {"name": self.name, "title": self.title, "attention": self.attention, "source": self.source}
        quantities = {name: value.to_dict() for name, value in self.quantities.items()}
        return data | {"note": self.note, "architecture": integers, "quantities": quantities}


def _integer(what: str, given: Any) -> tuple[int, str]:
    if not isinstance(given, dict) or set(given) != {"value", "source"} or not str(given["source"]).strip():
        raise InputError(f"{what} is {given!r}; expected a table of value and source")
    return whole(what, given["value"]), str(given["source"])
