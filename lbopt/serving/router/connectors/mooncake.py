"""Mooncake's connector, as vllm-ascend has it: the prefiller keeps the blocks, and the decode engine pulls them.

The probe says ``do_remote_decode``; the prefiller answers with its id, its blocks and its address, which the decode
engine gets as they are. Source: BalanceRoute (arXiv 2605.06113), section 5; vllm-ascend's prefill/decode proxy.
"""

from __future__ import annotations

from typing import Any

_PROBE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


class Mooncake:
    """The connector."""

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
