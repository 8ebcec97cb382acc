"""The table of connectors, and what a connector is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from lbopt.serving.router.connectors.mooncake import Mooncake
from lbopt.serving.router.connectors.nixl import Nixl
from lbopt.spec import unknown


class Connector(Protocol):
    """What the two hops of one request say to each other."""

    def probe(self) -> dict[str, Any]:
        """Return the `kv_transfer_params` of the request to the prefiller."""

    def prepare(self, body: dict[str, Any]) -> None:
        """Change the body of the request to the prefiller, which asks for one token already."""

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine, from the prefiller's answer.

        None = it gave none, and another attempt is to be made; {} = the decode engine computes the prompt itself.
        """

    def blocks(self, handoff: dict[str, Any]) -> int:
        """Return the blocks that the request holds at the prefiller."""


CONNECTORS: dict[str, Callable[[], Connector]] = {"mooncake": Mooncake, "nixl": Nixl}


def make_connector(name: str) -> Connector:
    """Return the connector of a name."""
    if name not in CONNECTORS:
        raise unknown("connector", name, CONNECTORS)
    return CONNECTORS[name]()
