"""Connectors: how a prefill engine hands a KV cache over to a decode engine. One class each, and an entry below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from lbopt.spec import unknown

_PROBE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


class Mooncake:
    """Mooncake's connector, as vllm-ascend has it: the prefiller keeps the blocks, and the decode engine pulls them.

    The probe says ``do_remote_decode``; the prefiller answers with its id, its blocks and its address, which the decode
    engine gets as they are. Source: BalanceRoute (arXiv 2605.06113), section 5; vllm-ascend's prefill/decode proxy.
    """

    def probe(self) -> dict[str, Any]:
        """Return the `kv_transfer_params` of the request to the prefiller."""
        return dict(_PROBE)

    def prepare(self, body: dict[str, Any]) -> None:
        """Insist on the one token, as vllm-ascend's proxy does."""
        body["min_tokens"] = 1

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine; None where the prefiller gave none."""
        parameters = answer.get("kv_transfer_params")
        return parameters if isinstance(parameters, dict) and parameters else None

    def blocks(self, handoff: dict[str, Any]) -> int:
        """Return the blocks that the request holds at the prefiller; lists of several cache groups are added up."""
        found = handoff.get("remote_block_ids")
        if not isinstance(found, list):
            return 0
        return sum(len(part) if isinstance(part, list) else 1 for part in found)


_NOT_FOR_PREFILL = ("min_tokens", "min_completion_tokens")


class Nixl(Mooncake):
    """NIXL's connector, as vLLM has it: the prefiller keeps the blocks, and the decode engine pulls them.

    The probe and the answer have the fields of Mooncake's connector. Two things differ: a prefiller takes no
    `min_tokens`, and where it has nothing to hand over, because the prompt ended with its first token, say, the
    decode engine computes the prompt itself.

    A prefiller frees blocks that are not pulled by a limit of its own (`VLLM_NIXL_ABORT_REQUEST_TIMEOUT`): the longest
    wait in the pool, `ttl`, has to be shorter.

    Source: vLLM's documentation, *NixlConnector Usage Guide*; the proxy of its own tests,
    `tests/v1/kv_connector/nixl_integration/toy_proxy_server.py`.
    """

    def prepare(self, body: dict[str, Any]) -> None:
        """Leave out what a prefiller does not take."""
        for name in _NOT_FOR_PREFILL:
            body.pop(name, None)

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine; none where it is to compute the prompt itself."""
        return super().handoff(answer) or {}


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
