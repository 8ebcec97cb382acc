"""Decoders that do not wait for each other, one event at a time, with lists; ELDR sheet section 9 for the step time."""

import math
from dataclasses import dataclass, field


@dataclass
class Decoder:
    """One worker."""

    queue: list[int] = field(default_factory=list)
    running: dict[int, int] = field(default_factory=dict)  # request: tokens made
    end: float = math.inf
    steps: list[tuple[float, float, int, float]] = field(default_factory=list)  # begin, seconds, requests, experts


def union(rows):
    """Different experts of a layer that requests with these chances (L, E) use in a step, mean over layers."""
    total = 0.0
    for layer in range(len(rows[0])):
        for expert in range(len(rows[0][0])):
            nobody = 1.0
            for row in rows:
                nobody *= 1.0 - row[layer][expert]
            total += 1.0 - nobody
    return total / len(rows[0])


def run(prompt, output, arrival, chances, choose, seconds, workers, slots):
    """Return worker, start and finish of each request, and the workers.

    `choose(i, counts, tokens)` is the router; `seconds(requests, tokens, experts)` the step time.
    """
    fleet = [Decoder() for _ in range(workers)]
    where, start, finish = [-1] * len(prompt), [math.nan] * len(prompt), [math.nan] * len(prompt)

    def begin(decoder, now):
        while decoder.queue and len(decoder.running) < slots:
            request = decoder.queue.pop(0)
            decoder.running[request] = 0
            start[request] = now
        if not decoder.running:
            decoder.end = math.inf
            return
        tokens = sum(prompt[r] + made for r, made in decoder.running.items())
        experts = union([chances[r] for r in decoder.running]) if chances else 0.0
        took = seconds(len(decoder.running), tokens, experts)
        decoder.steps.append((now, took, len(decoder.running), experts))
        decoder.end = now + took

    coming = list(range(len(prompt)))
    while coming or any(decoder.end < math.inf for decoder in fleet):
        first = min(fleet, key=lambda decoder: decoder.end)
        if coming and arrival[coming[0]] < first.end:
            request = coming.pop(0)
            counts = [len(decoder.running) + len(decoder.queue) for decoder in fleet]
            # tokens as the router knows them: grown with every step that has ended
            tokens = [
                sum(prompt[r] + made for r, made in decoder.running.items()) + sum(prompt[r] for r in decoder.queue)
                for decoder in fleet
            ]
            where[request] = choose(request, counts, tokens)
            decoder = fleet[where[request]]
            decoder.queue.append(request)
            if decoder.end == math.inf:
                begin(decoder, arrival[request])
        else:
            now = first.end
            for request in list(first.running):
                first.running[request] += 1
                if first.running[request] == output[request]:
                    del first.running[request]
                    finish[request] = now
            begin(first, now)
    return where, start, finish, fleet
