"""What a router whose rule goes by experts tells Prometheus: where signatures are from, and whether traffic drifts."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lbopt.serving.router.signatures import Signatures


def locality_metrics(signatures: Signatures) -> Iterator[Metric]:
    """Read what is known of signatures and drift, by model; of several groups of a model, by their number."""
    asked = CounterMetricFamily(
        "lbopt_locality_requests", "Requests by where their signature was from", labels=["source"]
    )
    for source, count in signatures.sources.items():
        asked.add_metric([source], count)
    yield asked
    yield CounterMetricFamily("lbopt_locality_learned", "Signatures that were remembered", signatures.learned)
    labels = ["model", "group"]
    remembered = GaugeMetricFamily("lbopt_locality_remembered", "Entries that are remembered", labels=["model"])
    for model, count in signatures.remembered.items():
        remembered.add_metric([model], count)
    yield remembered
    table = GaugeMetricFamily(
        "lbopt_locality_table_info", "1 for the routing table that decides", labels=[*labels, "table"]
    )
    seen = GaugeMetricFamily(
        "lbopt_locality_watched_requests", "Requests since the watch on drift began", labels=labels
    )
    means = {
        name: GaugeMetricFamily(f"lbopt_locality_{name}", text, labels=[*labels, "of"])
        for name, text in (
            ("similarity", "Cosine to the nearest centroid"),
            ("band_workers", "Workers in the band"),
            ("strange_share", "Share of choices at experts that no calibration request used"),
        )
    }
    levels = GaugeMetricFamily(
        "lbopt_locality_drift_level", "A chart over its threshold; 1 sounds the alarm", labels=[*labels, "statistic"]
    )
    alarm = GaugeMetricFamily("lbopt_locality_drift_alarm", "1 after an alarm", labels=labels)
    for model, rules in signatures.rules.items():
        for number, rule in enumerate(rules):
            names = [model, str(number)]
            table.add_metric([*names, rule.table_id], 1)
            if rule.watch is None:
                continue
            reading = rule.watch.reading()
            seen.add_metric(names, reading.requests)
            live = (reading.similarity, reading.band, reading.strange)
            for family, now, calibrated in zip(means.values(), live, reading.expected, strict=True):
                family.add_metric([*names, "live"], now)
                family.add_metric([*names, "calibration"], calibrated)
            for statistic, level in reading.levels.items():
                levels.add_metric([*names, statistic], level)
            alarm.add_metric(names, float(reading.alarm is not None))
    yield from (table, seen, *means.values(), levels, alarm)
