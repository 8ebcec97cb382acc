"""`/metrics` of one endpoint, with vLLM's names: gauges and counters read from the engine, times kept in histograms.

Every rank of an endpoint is one value of the label `engine`. A gauge is what the engine holds when it is asked; real
engines report what they held after their last step, which is the same here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lbopt.serving.families import counter, gauge

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


_GAUGES = {
    "running": ("vllm:num_requests_running", "Number of requests in model execution batches."),
    "waiting": ("vllm:num_requests_waiting", "Number of requests waiting to be processed."),
    "kv_usage": ("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage."),
}
_COUNTERS = {
    "preemptions": ("vllm:num_preemptions", "Cumulative number of preemptions."),
    "prompt_tokens": ("vllm:prompt_tokens", "Number of prefill tokens processed."),
    "made_tokens": ("vllm:generation_tokens", "Number of generation tokens processed."),
}


class RankFigures(NamedTuple):
    """What one rank reports: requests running and waiting, share of its KV cache in use, and what it has counted."""

    running: int
    waiting: int
    kv_usage: float
    preemptions: int
    prompt_tokens: int
    made_tokens: int


class _Engines(Collector):
    """The gauges and counters, read when they are asked for."""

    def __init__(self, metrics: EndpointMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Yield every family with a sample a rank."""
        of = self._metrics
        figures = [((of.model, str(rank)), one) for rank, one in enumerate(of.figures())]
        for tell, families in ((gauge, _GAUGES), (counter, _COUNTERS)):
            for field, (name, text) in families.items():
                values = {names: float(getattr(one, field)) for names, one in figures}
                yield tell(name, text, values, "model_name", "engine")
        ended = {(of.model, str(rank), why): float(count) for (rank, why), count in sorted(of.ended.items())}
        text = "Count of successfully processed requests."
        yield counter("vllm:request_success", text, ended, "model_name", "engine", "finished_reason")
        yield InfoMetricFamily("vllm:cache_config", "Information of the LLMEngine CacheConfig", value=of.cache_config)


class EndpointMetrics:
    """The metrics of one endpoint.

    Parameters
    ----------
    model
        Its name, a label of everything.
    figures
        Gives what every rank reports now.
    cache_config
        What `vllm:cache_config_info` says, by name.
    """

    def __init__(self, model: str, figures: Callable[[], Iterable[RankFigures]], cache_config: dict[str, str]) -> None:
        self.model = model
        self.figures = figures
        self.cache_config = cache_config
        self.ended: Counter[tuple[int, str]] = Counter()
        self._registry = CollectorRegistry()
        self._registry.register(_Engines(self))
        self._first, self._gap, self._whole = (
            Histogram(name, text, ["model_name", "engine"], buckets=_SECONDS, registry=self._registry)
            for name, text in (
                ("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds."),
                ("vllm:request_time_per_output_token_seconds", "Histogram of time per output token in seconds."),
                ("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds."),
            )
        )

    def note(self, rank: int, reason: str, first: float | None, whole: float, made: int) -> None:
        """Count a request that has ended.

        Parameters
        ----------
        rank
            Where it ran.
        first, whole
            s from its coming in to its first token, None where it made none, and to its end.
        made
            Tokens that it made.
        """
        self.ended[rank, reason] += 1
        labels = (self.model, str(rank))
        self._whole.labels(*labels).observe(whole)
        if first is not None:
            self._first.labels(*labels).observe(first)
            if made > 1:
                self._gap.labels(*labels).observe((whole - first) / (made - 1))

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self._registry)
