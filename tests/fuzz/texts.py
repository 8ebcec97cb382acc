"""Small texts that are damaged: specs of policies, a policy file, a router's log as another router writes it."""

from typing import Any

SPECS = (
    "fcfs",
    "power-of-two:admission=pooled",
    "br-0:age_bound=50",
    "br-h:horizon=4",
    "jsq:admission=pooled",
    "vllm",
    "max-min",
    "br-h:horizon=4,predictor=survival",
)

POLICY_FILE = '''"""A policy."""
import numpy as np

LIMIT = 3


def route(observation):
    """Everything to worker 0."""
    return np.zeros(observation.sizes.size, dtype=np.int64)


route.admission = "pooled"
'''


def router_columns(data: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns of a log with dates, a status, and names of workers."""
    import numpy as np

    def date(seconds: Any) -> list[str]:
        start = np.datetime64("2025-01-01T00:00:00", "ms")
        return [str(start + np.timedelta64(round(float(second) * 1000), "ms")) + "Z" for second in seconds]

    return {
        "req_id": list(data["id"]),
        "created_at": date(data["arrival"]),
        "decode_start": date(data["start"]),
        "finished_at": date(data["finish"]),
        "input_tokens": list(data["prompt"]),
        "completion_tokens": list(data["output"]),
        "dp_rank": [f"dp{worker}" for worker in data["worker"]],
        "finish_reason": ["stop"] * len(data["id"]),
    }
