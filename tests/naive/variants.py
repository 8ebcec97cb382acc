"""Every pooled rule with options that random cases run."""

from typing import Any

#: Name and options.
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("fcfs", {}),
    ("round_robin", {}),
    ("random", {}),
    ("power_of_two", {}),
    ("jsq", {}),
    ("jsq_load", {}),
    ("vllm", {}),
    ("max_min", {"scope": "oldest"}),
    ("max_min", {"scope": "pool"}),
    ("auto", {}),
    ("auto", {"age_weight": 0.0, "age_bound": 3}),
    ("br_0", {"stage_switch": 3, "window_size": 4}),
    ("br_0", {"stage_switch": 0, "window_size": 4}),
    ("br_0", {"stage_switch": 99, "window_size": 3, "window_order": "arrival", "key": "product"}),
    ("br_0", {"stage_switch": 2, "window_size": 4, "age_bound": 3}),
    ("br_0_bypass", {}),
    ("br_0_bypass", {"ties": "index"}),
    ("iqr", {}),
    ("iqr", {"multiplier": "0.5", "percentile": "weibull"}),
]
