"""NIXL's connector, as vLLM has it: the prefiller keeps the blocks, and the decode engine pulls them.

The probe and the answer have the fields of Mooncake's connector. Two things differ: a prefiller takes no `min_tokens`,
and where it has nothing to hand over, because the prompt ended with its first token, say, the decode engine computes
the prompt itself.

A prefiller frees blocks that nobody pulls by a limit of its own (`VLLM_NIXL_ABORT_REQUEST_TIMEOUT`): the longest wait
in the pool, `ttl`, has to be shorter.

Source: vLLM's documentation, *NixlConnector Usage Guide*; the proxy of its own tests,
`tests/v1/kv_connector/nixl_integration/toy_proxy_server.py`.
"""

from __future__ import annotations

from typing import Any

from lbopt.serving.router.connectors.mooncake import Mooncake

_NOT_FOR_PREFILL = ("min_tokens", "min_completion_tokens")


class Nixl(Mooncake):
    """The connector."""

    def prepare(self, body: dict[str, Any]) -> None:
        """Leave out what a prefiller does not take."""
        for name in _NOT_FOR_PREFILL:
            body.pop(name, None)

    def handoff(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` for the decode engine; none where it is to compute the prompt itself."""
        return super().handoff(answer) or {}
