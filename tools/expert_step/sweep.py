"""Timing the places of a plan on a device: each is captured once as a graph, and all are replayed in random rounds.

A replay goes through all layers that are held, so that no weights are found in the device's cache. Before a sample the
device is kept busy, so that what the host needs to launch a graph is not in the time.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.measure.torch_backend import TorchDevice, fastest
from lbopt.hardware.step_time.barrier_form import expected_active
from tools.expert_step.parts import PlainParts, State, Tiles, TritonParts, Weights
from tools.expert_step.plan import DecoderShape, Place, choices, steering

#: Cycles for which the device is kept busy while the host launches.
_AHEAD = 2_000_000
#: Columns, depth, warps and stages that are tried.
_BLOCKS = ((32, 64, 4, 4), (32, 128, 4, 4), (64, 64, 4, 4), (64, 128, 4, 3), (64, 128, 8, 4), (128, 64, 4, 4))
#: Another error than this between two ways of one part, relative, is a mistake and not rounding.
MOST_ERROR = 2e-2

Parts = PlainParts | TritonParts


@dataclass(slots=True)
class Timed:
    """A place and its samples, seconds of one replay."""

    place: Place
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Middle sample."""
        return float(np.median(self.seconds))


class Sweep:
    """A device with the weights of a decoder."""

    def __init__(self, shape: DecoderShape, layers: int, pool_tokens: int, device: str, *, plain: bool = False) -> None:
        self._torch: Any = importlib.import_module("torch")
        self.shape, self.device = shape, device
        self.place = TorchDevice(self._torch, device)
        self.cuda = device.startswith("cuda")
        kind = self._torch.bfloat16 if self.cuda else self._torch.float32
        self.weights = Weights.random(shape, layers, pool_tokens, device, kind)
        self.parts: Parts = PlainParts(self.weights) if plain else TritonParts(self.weights, self._fastest)
        self.rng = np.random.default_rng(0)
        self._pool: Any = None
        self._first: Any = None
        self._kept: Any = None
        if self.cuda:  # graphs share memory; torch forgets a pool whose last graph is gone, so one graph is kept
            self._pool, self._first = self._torch.cuda.graph_pool_handle(), self._torch.cuda.CUDAGraph()
            number = self._torch.zeros(1, device=device)
            with self._torch.cuda.graph(self._first, pool=self._pool):
                self._kept = number + 1

    def call(self, place: Place) -> Callable[[], Any]:
        """Return the call of a place over all layers."""
        torch, parts = self._torch, self.parts
        state = State.of(self.weights, place.requests)
        if place.active:
            chosen = choices(place, self.shape, self.rng)
            state.bias.copy_(torch.from_numpy(steering(chosen, self.shape.experts)))
        layers = range(self.weights.layers)

        def run() -> None:
            with torch.inference_mode():
                parts.begin(state)
                for layer in layers:
                    if place.context:
                        parts.attend(state, layer, place.context)
                    if place.active:
                        parts.experts(state, layer)
                if place.part in ("head", "step"):
                    parts.head(state)

        return run

    def captured(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Return the replay of a call; on a processor the call itself."""
        if not self.cuda:
            call()
            return call
        torch = self._torch
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            call()

        def replay(_kept: Callable[[], Any] = call) -> None:  # the call owns what the graph reads
            graph.replay()

        return replay

    def clock(self, call: Callable[[], Any], times: int = 1) -> float:
        """Return the seconds of a call, on the device's own clock where it has one."""

        def several() -> None:
            for _ in range(times):
                call()

        return self.place.clock(several, _AHEAD) / times

    def tune(self, requests: Sequence[int]) -> dict[int, dict[str, float]]:
        """Choose the blocks of the two products for each number of requests, at the experts of an even gate.

        Returns the seconds of a layer by what was tried.
        """
        parts, shape = self.parts, self.shape
        if isinstance(parts, PlainParts):
            return {}
        found: dict[int, dict[str, float]] = {}
        for count in requests:
            even = round(float(expected_active(np.array(count), shape.experts, shape.experts_per_token)))
            rows_of_expert = count * shape.experts_per_token / even
            seconds: dict[tuple[Tiles, Tiles], float] = {}
            for rows in (16, 32, 64):
                if rows > 16 and rows > 4 * rows_of_expert:
                    continue
                ways: list[Tiles] = [(rows, *block) for block in _BLOCKS if self._fits(block)]
                base = ways[0]
                one = {way: self._of_tiles(count, even, way, base) for way in ways}
                first = min(one, key=lambda way: one[way])
                two = {way: self._of_tiles(count, even, first, way) for way in ways}
                second = min(two, key=lambda way: two[way])
                seconds[first, second] = two[second]
            best = min(seconds, key=lambda pair: seconds[pair])
            parts.tiles[count] = best
            found[count] = {f"{pair}": value / self.weights.layers for pair, value in seconds.items()}
        return found

    def _fits(self, block: tuple[int, int, int, int]) -> bool:
        cols, deep = block[:2]
        shape = self.shape
        return not (shape.hidden % cols or shape.width % cols or shape.hidden % deep or shape.width % deep)

    def _of_tiles(self, requests: int, active: int, first: Tiles, second: Tiles) -> float:
        """Return the seconds of the layers of experts with these blocks."""
        parts = self.parts
        assert isinstance(parts, TritonParts)
        parts.tiles[requests] = (first, second)
        replay = self.captured(self.call(Place("experts", requests, 0, active)))
        replay()
        return min(self.clock(replay) for _ in range(2))

    def _fastest(self, calls: list[Callable[[], Any]]) -> int:
        return fastest(calls, lambda call: self.clock(call, 3))

    def check(self, requests: int, context: int, active: int) -> dict[str, float]:
        """Compare each part of two layers with plain torch in the same numbers; an error where one is off.

        Parameters
        ----------
        requests, context, active
            The place that is compared.
        """
        torch, shape = self._torch, self.shape
        plain, place = PlainParts(self.weights), Place("step", requests, context, active)
        ours, theirs = State.of(self.weights, requests), State.of(self.weights, requests)
        bias = torch.from_numpy(steering(choices(place, shape, self.rng), shape.experts))
        errors: dict[str, float] = {}
        with torch.inference_mode():
            if isinstance(self.parts, TritonParts):
                for name in ("inner", "outer"):  # what a kernel leaves out is noticed
                    self.parts.buffers(requests)[name].fill_(float("nan"))
            for state in (ours, theirs):
                state.bias.copy_(bias)
                plain.begin(state)
            for layer in range(min(2, self.weights.layers)):
                for name, part in (("attention", "attend"), ("experts", "experts")):
                    theirs.normed.copy_(ours.normed)
                    ours.residual.zero_()  # so that the part alone is compared, not rounded to the stream
                    theirs.residual.zero_()
                    given = (layer, context) if part == "attend" else (layer,)
                    getattr(plain, part)(theirs, *given)
                    self._reset_counts(requests)
                    getattr(self.parts, part)(ours, *given)
                    right, got = theirs.residual.float(), ours.residual.float()
                    errors[f"{name}, layer {layer}"] = float((got - right).norm() / right.norm())
        wrong = {name: error for name, error in errors.items() if not error < MOST_ERROR}
        if wrong:
            raise InputError(f"the kernels and plain torch differ on {self.device}: {wrong}")
        return errors

    def _reset_counts(self, requests: int) -> None:
        if isinstance(self.parts, TritonParts):
            self.parts.buffers(requests)["counts"].zero_()

    def time(self, places: Sequence[Place], rounds: int, seconds: float, note: Callable[[str], None]) -> list[Timed]:
        """Time all places in rounds of random order, for at most so many seconds; two rounds at least."""
        begin = time.perf_counter()
        replays = [self.captured(self.call(place)) for place in places]
        note(f"captured {len(places)} in {time.perf_counter() - begin:.1f} s")
        found = [Timed(place) for place in places]
        for turn in range(rounds):
            if turn > 1 and time.perf_counter() - begin > seconds:
                break
            for at in self.rng.permutation(len(places)).tolist():
                found[at].seconds.append(self.clock(replays[at], 2))
        note(f"{turn + 1} rounds in {time.perf_counter() - begin:.1f} s")
        return found

    def uncaptured(self, place: Place, times: int = 5) -> float:
        """Return the seconds of a step whose kernels the host launches one by one, to the end on the device."""
        call = self.call(place)
        call()
        seconds = []
        for _ in range(times):
            self.place.wait()
            begin = time.perf_counter()
            call()
            self.place.wait()
            seconds.append(time.perf_counter() - begin)
        return float(np.median(seconds))

    def bandwidth(self, num_bytes: int = 4 << 30) -> float:
        """Return the bytes a second at which a large block is read."""
        block = self._torch.ones(num_bytes // 4, dtype=self._torch.float32, device=self.device)
        call: Callable[[], Any] = block.sum
        call()
        return num_bytes / min(self.clock(call) for _ in range(7))
