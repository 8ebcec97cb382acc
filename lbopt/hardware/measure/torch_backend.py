"""Accelerators, and the host, through PyTorch; an extra (`lbopt[measure]`), imported when it is asked for.

What differs from accelerator to accelerator under torch: is it there, how is it timed, how much memory is free.

Torch gives each kind a module of the same form (`torch.cuda`, `torch.npu` once `torch_npu` is imported, `torch.xpu`,
`torch.mps`). Where it has events, the time between two events on the device's own queue is taken, else the wall
between two synchronisations. Calls of one sample are queued in a row: what the host needs to start one is hidden behind
the one before, unless the device is the faster of the two; then the host's pace is what is measured, as in serving
without captured graphs.

Grouped-query attention is torch's own fused one, a group's heads taken as queries of one KV head, so that KV is read
once. Torch has several kernels of it, and which is best depends on the batch: for each batch and context the fastest is
taken, as engines choose theirs. So is it for latent attention, in one piece or in blocks.

Latent attention has no fused kernel in torch: it is two products around a softmax, in chunks on a processor and at once
on an accelerator, where scores (128 values a token against 576 of KV) are written and read besides. Long contexts may
be taken there in blocks side by side, merged by their log-sum-exp, for one long product leaves a device idle. Its rate
on an accelerator is what plain torch reaches, below that of a kernel made for it.
"""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.hardware.measure.attention import BLOCK, AttentionShape
from lbopt.hardware.measure.backend import Decode, host_account, host_free_bytes, nvidia_driver, processor
from lbopt.hardware.measure.numpy_backend import CHUNK, random_block, random_queries
from lbopt.hardware.measure.power import EnergyCounter, nvidia_counter
from lbopt.hardware.measure.products import Product
from lbopt.spec import unknown

#: In the order in which they are tried where no device is named.
KINDS = ("cuda", "npu", "xpu", "mps", "cpu")
_SPIN = """
extern "C" __global__ void wait_for_others(const volatile int* flag, int cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles && *flag == 0) { }
}
"""
#: About 3 ms of a device that makes 1.7e9 cycles a second.
SPIN_CYCLES = 5_000_000


class TorchDevice:
    """One device that torch knows; `torch` is the package itself, so that a test can hand in a stub."""

    def __init__(self, torch: Any, device: str | None = None) -> None:
        self._torch = torch
        named = device or next(kind for kind in KINDS if _available(torch, kind))
        self.kind, _, index = named.partition(":")
        if self.kind not in KINDS:
            raise unknown("device", self.kind, KINDS, " (of backend torch)")
        if not _available(torch, self.kind):
            raise InputError(f"device '{named}' is not available: torch {torch.__version__} finds no {self.kind} here")
        self.name = named
        self._module: Any = None if self.kind == "cpu" else getattr(torch, self.kind)
        count = getattr(self._module, "device_count", lambda: 1)()
        if index and not (index.isascii() and index.isdigit() and int(index) < count):
            raise InputError(f"device '{named}' does not exist; {self.kind} has {count} here, numbered from 0")
        choose = getattr(self._module, "set_device", None)
        if index and choose:
            choose(int(index))  # events and memory are those of the present device

    def other_kernels(self, attention: Callable[..., Any]) -> list[Callable[..., Any]]:
        """Return the same fused attention without cuDNN's kernel, which torch 2.11 prefers on an H100.

        For one request of 262,144 tokens that kernel leaves most of the device idle: 183 GB/s of KV against 2,619 GB/s
        of the one that cuts long contexts into parts; for 64 requests it is the faster one.
        """
        switch = getattr(getattr(getattr(self._torch, "backends", None), "cuda", None), "enable_cudnn_sdp", None)
        if self.kind != "cuda" or switch is None:
            return []

        def without(*given: Any) -> Any:
            switch(False)
            try:
                return attention(*given)
            finally:
                switch(True)

        return [without]

    def title(self) -> str:
        """Return the device's name as its driver reports it."""
        read = getattr(self._module, "get_device_name", None)
        return str(read()) if read else processor()

    def account(self) -> dict[str, str]:
        """Return the device's name, its runtime and driver."""
        account = {"device": self.title(), "torch": str(self._torch.__version__)}
        version = getattr(self._torch, "version", None)
        for runtime in ("cuda", "hip", "xpu"):
            known = getattr(version, runtime, None)
            if known and self.kind in ("cuda", runtime):
                account[f"{runtime}_runtime"] = str(known)
        if self.kind == "cuda" and (driver := nvidia_driver()):
            account["driver"] = driver
        if self.kind == "npu":
            account["torch_npu"] = str(getattr(importlib.import_module("torch_npu"), "__version__", "unknown"))
        return account

    def free_bytes(self) -> int | None:
        """Return the device memory that could be taken now; None where torch cannot tell."""
        if self.kind == "cpu":
            return host_free_bytes()
        if hasattr(self._module, "mem_get_info"):
            return int(self._module.mem_get_info()[0])
        if hasattr(self._module, "recommended_max_memory"):
            return int(self._module.recommended_max_memory()) - int(self._module.driver_allocated_memory())
        return None

    def wait(self) -> None:
        """Wait until the device has done all that was started on it; a processor is never behind."""
        if self._module is not None:
            self._module.synchronize()

    def clock(self, work: Callable[[], Any], ahead: int = 0) -> float:
        """Return the seconds from the start of `work` to the end of all that it started on the device.

        `ahead` keeps the device busy for so many cycles first, where it can, so that it never waits for a launch.
        """
        event = self._event()
        self.wait()
        if event is None:
            begin = time.perf_counter()
            work()
            self.wait()
            return time.perf_counter() - begin
        first, last = event(enable_timing=True), event(enable_timing=True)
        if ahead:
            self._module._sleep(ahead)
        first.record()
        work()
        last.record()
        self.wait()
        return float(first.elapsed_time(last)) / 1e3

    def at_once(self, works: Sequence[Callable[[int], object]]) -> Callable[[int], object] | None:
        """Return a call that begins every work in a stream of its own and ends when all have; None without streams."""
        module = self._module
        if module is None or not (hasattr(module, "Stream") and hasattr(module, "stream")):
            return None
        streams = [module.Stream() for _ in works]

        def run(call: int) -> None:
            here = module.current_stream()
            for stream, work in zip(streams, works, strict=True):
                stream.wait_stream(here)
                with module.stream(stream):
                    work(call)
            for stream in streams:
                here.wait_stream(stream)

        return run

    def spinner(self, blocks: int, threads: int) -> Callable[[], Any] | None:
        """Return a call that polls a flag on so many threads for some milliseconds; None where it cannot be made.

        One thread is torch's own sleeping kernel; more are a kernel that torch compiles (2.8 and newer).
        """
        if blocks * threads == 1:
            sleep = getattr(self._module, "_sleep", None)
            return None if sleep is None else lambda: sleep(SPIN_CYCLES)
        compile_kernel = getattr(self._module, "_compile_kernel", None)
        if compile_kernel is None:
            return None
        try:
            kernel = compile_kernel(_SPIN, "wait_for_others")
            flag = self._torch.zeros(1, dtype=self._torch.int32, device=self.name)
            grid = {"grid": (blocks, 1, 1), "block": (threads, 1, 1)}
            kernel(**grid, args=[flag, SPIN_CYCLES])
            self._module.synchronize()
        except (RuntimeError, OSError, TypeError, ValueError):  # no compiler on this machine
            return None
        return lambda: kernel(**grid, args=[flag, SPIN_CYCLES])

    def counter(self) -> EnergyCounter | None:
        """Return the energy counter of an NVIDIA device; None where there is none."""
        if self.kind != "cuda" or getattr(getattr(self._torch, "version", None), "cuda", None) is None:
            return None
        index = int(self.name.partition(":")[2] or 0)
        read = getattr(self._module, "get_device_properties", None)
        uuid = getattr(read(index), "uuid", None) if read else None
        return nvidia_counter(index, None if uuid is None else str(uuid))

    def _event(self) -> Any:
        return getattr(self._module, "Event", None) or getattr(getattr(self._module, "event", None), "Event", None)


def fastest(calls: Sequence[Callable[[], Any]], clock: Callable[[Callable[[], Any]], float]) -> int:
    """Return the place of the call that takes least, each made twice before it is timed, but for those that fail."""
    seconds: dict[int, float] = {}
    for place, call in enumerate(calls):
        try:
            for _ in range(2):
                call()
            seconds[place] = min(clock(call) for _ in range(3))
        except RuntimeError:
            continue
    return min(seconds, key=lambda place: seconds[place], default=0)


def _available(torch: Any, kind: str) -> bool:
    """Return whether torch can compute on such a device now."""
    if kind == "cpu":
        return True
    if kind == "npu" and not hasattr(torch, "npu"):
        try:
            importlib.import_module("torch_npu")  # it hangs itself into torch
        except ImportError:
            return False
    module = getattr(getattr(torch, "backends", None), "mps", None) if kind == "mps" else getattr(torch, kind, None)
    return bool(module is not None and module.is_available())


ITEMSIZES = {"bfloat16": 2, "float16": 2, "float32": 4}
#: Of the block that is repeated to fill a pool.
_BLOCK = 65_537


class TorchBackend:
    """PyTorch on one device."""

    name = "torch"

    def __init__(self, device: str | None = None, dtype: str | None = None) -> None:
        try:
            self._torch: Any = importlib.import_module("torch")
        except ImportError:
            raise BackendUnavailableError(
                "backend torch needs PyTorch, which is not installed; "
                "install 'lbopt[measure]', or take --backend numpy for the host's processor"
            ) from None
        self._place = TorchDevice(self._torch, device)
        self.device = self._place.name
        self.is_host = self._place.kind == "cpu"
        self.dtype = dtype or ("float32" if self.is_host else "bfloat16")
        if self.dtype not in ITEMSIZES:
            raise unknown("dtype", self.dtype, ITEMSIZES)
        self.itemsize = ITEMSIZES[self.dtype]
        self._kind = getattr(self._torch, self.dtype)

    def account(self) -> dict[str, str]:
        """Return the device, its driver and runtime, and the host that it sits in."""
        return host_account() | self._place.account() | {"threads": str(self._torch.get_num_threads())}

    def free_bytes(self) -> int | None:
        """Return the device memory that could be taken now."""
        return self._place.free_bytes()

    def scratch_bytes(self, shape: AttentionShape, tokens: int) -> int:
        """Return the bytes of scores before and after softmax; the fused attention keeps none of note."""
        seen = min(tokens, CHUNK) if self.is_host else tokens
        return 2 * self.itemsize * shape.heads * seen if shape.latent else 0

    def decode(self, shape: AttentionShape, pool_tokens: int) -> Decode:
        """Return attention over a pool of random KV; contexts of equal length that stand together are one call."""
        torch = self._torch
        with self._memory():
            keys = self._pool(shape.kv_heads * pool_tokens * shape.key_dim, seed=1)
            values = None if shape.latent else self._pool(shape.kv_heads * pool_tokens * shape.value_dim, seed=2)
        queries = torch.from_numpy(random_queries(shape)).to(device=self.device, dtype=self._kind)
        group = shape.heads // shape.kv_heads
        chunk = CHUNK if self.is_host else pool_tokens
        attention = torch.nn.functional.scaled_dot_product_attention
        chosen: dict[tuple[int, int], Callable[..., Any]] = {}

        def grouped(query: Any, key: Any, value: Any) -> Any:
            return attention(query, key, value, scale=1.0)  # queries are scaled already

        def latent(query: Any, key: Any, value: Any) -> Any:
            return _latent(torch, query, key, shape.value_dim, chunk)

        def in_blocks(query: Any, key: Any, value: Any) -> Any:
            return _latent_in_blocks(torch, query, key, shape.value_dim)

        def ways(context: int) -> list[Callable[..., Any]]:
            """Return what computes the same attention on this device."""
            if shape.latent:
                return [latent] if self.is_host or context < BLOCK else [latent, in_blocks]
            return [grouped, *self._place.other_kernels(grouped)] if self.itemsize == 2 else [grouped]

        def part(pool: Any, width: int, start: int, batch: int, context: int) -> Any:
            """Return [batch, kv_heads, context, width] of the pool, without a copy."""
            row = shape.kv_heads * width
            return pool[start * row : (start + batch * context) * row].view(batch, shape.kv_heads, context, width)

        def run(contexts: tuple[int, ...], start: int) -> Any:
            found = []
            with torch.inference_mode():
                for context, equal in itertools.groupby(contexts):
                    batch = len(list(equal))
                    key = part(keys, shape.key_dim, start, batch, context)
                    query = queries.view(1, shape.kv_heads, group, shape.key_dim).expand(batch, -1, -1, -1)
                    value = None if values is None else part(values, shape.value_dim, start, batch, context)
                    if (batch, context) not in chosen:
                        tried = ways(context)
                        calls = [partial(way, query, key, value) for way in tried]
                        chosen[batch, context] = tried[fastest(calls, self._place.clock) if len(calls) > 1 else 0]
                    out = chosen[batch, context](query, key, value)
                    found.append(out.reshape(batch, shape.heads, shape.value_dim))
                    start += batch * context
                return found[0] if len(found) == 1 else torch.cat(found)

        return run

    def reader(self, num_bytes: int) -> Callable[[], Any]:
        """Return the sum of a block of float32."""
        with self._memory():
            block = self._torch.ones(num_bytes // 4, dtype=self._torch.float32, device=self.device)
        return lambda: block.sum()

    def multiply(self, products: Sequence[Product]) -> Callable[[int], Callable[[], Any]]:
        """Return calls of ``tokens @ weights``, [copies, tokens, outputs] of each product."""
        torch = self._torch
        with self._memory():
            weights = [self._pool(one.parameters, seed=5).view(one.copies, one.inputs, one.outputs) for one in products]

        def of(requests: int) -> Callable[[], Any]:
            with self._memory():
                tokens = [
                    self._pool(one.copies * one.tokens(requests) * one.inputs, seed=6).view(one.copies, -1, one.inputs)
                    for one in products
                ]

            def run() -> Any:
                with torch.inference_mode():
                    for left, right in zip(tokens, weights, strict=True):
                        out = left[0] @ right[0] if len(right) == 1 else torch.bmm(left, right)
                    return out

            return run

        return of

    def at_once(self, works: Sequence[Callable[[int], object]]) -> Callable[[int], object] | None:
        """Return a call that begins every work in a stream of its own and ends when all have; None without streams."""
        return self._place.at_once(works)

    def spin(self, blocks: int, threads: int) -> Callable[[], Any] | None:
        """Return a call that spins for some milliseconds."""
        return self._place.spinner(blocks, threads)

    def touch(self) -> Callable[[], Any]:
        """Return a call that launches an addition to one number."""
        number = self._torch.zeros(1, device=self.device)
        return lambda: number.add_(1)

    def counter(self) -> EnergyCounter | None:
        """Return the energy counter of an NVIDIA device."""
        return self._place.counter()

    def clock(self, work: Callable[[], Any]) -> float:
        """Return the seconds from the start of `work` to the end of all that it started on the device."""
        with self._memory():
            return self._place.clock(work)

    @contextmanager
    def _memory(self) -> Iterator[None]:
        """Say in one sentence that memory ran out: others may have taken what was free in advance."""
        try:
            yield
        except self._torch.OutOfMemoryError:
            raise InputError(f"{self.device} ran out of memory while measuring; give a smaller --most") from None

    def _pool(self, size: int, seed: int) -> Any:
        """Return `size` normal numbers, a small block of them repeated."""
        block = self._torch.from_numpy(random_block((_BLOCK,), seed)).to(device=self.device, dtype=self._kind)
        pool = self._torch.empty(size, dtype=self._kind, device=self.device)
        whole = size // _BLOCK * _BLOCK
        pool[:whole].view(-1, _BLOCK)[:] = block
        pool[whole:] = block[: size - whole]
        return pool


def _latent(torch: Any, query: Any, key: Any, value_dim: int, chunk: int) -> Any:
    """Return softmax(query keyᵀ) key[..., :value_dim], a chunk of tokens at a time where there are several."""
    query, key = query[:, 0], key[:, 0]  # one KV head: [batch, heads, key_dim] and [batch, context, key_dim]
    context = key.shape[1]
    if context <= chunk:
        return torch.softmax(query @ key.transpose(1, 2), dim=-1) @ key[..., :value_dim]
    best: Any = None
    total: Any = None
    out: Any = None
    for begin in range(0, context, chunk):
        seen = key[:, begin : begin + chunk]
        scores = query @ seen.transpose(1, 2)
        new = scores.amax(dim=-1, keepdim=True)
        new = new if best is None else torch.maximum(best, new)
        weights = torch.exp(scores - new)
        sums, sight = weights.sum(dim=-1, keepdim=True), weights @ seen[..., :value_dim]
        if best is None:
            total, out = sums, sight
        else:
            kept = torch.exp(best - new)
            total, out = total * kept + sums, out * kept + sight
        best = new
    return out / total


def _latent_in_blocks(torch: Any, query: Any, key: Any, value_dim: int) -> Any:
    """Return softmax(query keyᵀ) key[..., :value_dim]: whole blocks side by side, and what is left over beside them."""
    query, key = query[:, 0], key[:, 0]  # one KV head: [batch, heads, key_dim] and [batch, context, key_dim]
    batch, context, width = key.shape
    whole = context // BLOCK
    blocks = key[:, : whole * BLOCK].reshape(batch * whole, BLOCK, width)  # a view where nothing is left over
    several = query.unsqueeze(1).expand(batch, whole, *query.shape[1:]).reshape(batch * whole, *query.shape[1:])
    parts = [[one.unflatten(0, (batch, whole)) for one in _one_block(torch, several, blocks, value_dim)]]
    if context % BLOCK:
        rest = _one_block(torch, query, key[:, whole * BLOCK :], value_dim)
        parts.append([one.unsqueeze(1) for one in rest])
    out = torch.cat([part for part, _ in parts], dim=1)
    sums = torch.cat([part for _, part in parts], dim=1)
    return (out * torch.softmax(sums, dim=1).to(out.dtype)).sum(dim=1)


def _one_block(torch: Any, query: Any, key: Any, value_dim: int) -> tuple[Any, Any]:
    """Return attention over one block each, and the log-sum-exp of its scores, [..., heads, 1] of float32."""
    scores = query @ key.transpose(1, 2)
    total = torch.logsumexp(scores, dim=-1, keepdim=True).float()
    return torch.softmax(scores, dim=-1) @ key[..., :value_dim], total
