"""Backends compute attention, all of them the same; what accelerators do differently, on stubs."""

import importlib
import subprocess
import sys
import types

import numpy as np
import pytest
from cli.terminal import environment

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.hardware.measure import make_backend
from lbopt.hardware.measure.attention import SHAPES, AttentionShape
from lbopt.hardware.measure.backend import host_account, nvidia_driver
from lbopt.hardware.measure.numpy_backend import CHUNK, NumpyBackend, attend, random_block, random_queries
from lbopt.hardware.measure.torch_backend import TorchDevice

SMALL = AttentionShape("small", "", 6, 2, 8, 8, False)
LATENT = AttentionShape("small-latent", "", 6, 1, 12, 8, True)


def naive(queries, keys, values):
    """Softmax attention as in the books, in double precision."""
    scores = queries.astype(float) @ keys.astype(float).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values.astype(float)


@pytest.mark.parametrize("tokens", [1, 5, CHUNK, CHUNK + 1, 3 * CHUNK - 7])
def test_chunked_attention_is_attention(tokens):
    draw = np.random.default_rng(tokens)
    queries, keys, values = (draw.standard_normal((n, 16), np.float32) for n in (4, tokens, tokens))
    assert attend(queries, keys, values) == pytest.approx(naive(queries, keys, values), abs=1e-5)


@pytest.mark.parametrize("shape", [SMALL, LATENT], ids=lambda shape: shape.name)
def test_numpy_reads_the_part_of_the_pool_that_it_is_told(shape):
    pool, contexts, start = 5000, (700, 2500, 1), 800
    found = NumpyBackend().decode(shape, pool)(contexts, start)
    keys = random_block((shape.kv_heads, pool, shape.key_dim), 1)
    values = keys[..., : shape.value_dim] if shape.latent else random_block((shape.kv_heads, pool, shape.value_dim), 2)
    queries, group = random_queries(shape), shape.heads // shape.kv_heads
    assert found.shape == (3, shape.heads, shape.value_dim)
    for request, context in enumerate(contexts):
        for head in range(shape.heads):
            kv, window = head // group, slice(start, start + context)
            expected = naive(queries[head : head + 1], keys[kv, window], values[kv, window])[0]
            assert found[request, head] == pytest.approx(expected, abs=1e-5)
        start += context


@pytest.mark.parametrize("shape", [SMALL, LATENT], ids=lambda shape: shape.name)
@pytest.mark.parametrize("contexts", [(300,), (128, 128, 128), (5, 5, 700, 1), (2 * CHUNK + 9,) * 2])
def test_torch_on_the_processor_computes_attention(shape, contexts):
    pytest.importorskip("torch")
    pool, start = 12_000, 321
    found = make_backend("torch", "cpu").decode(shape, pool)(contexts, start).numpy()
    flat_keys = random_block((pool * shape.kv_heads * shape.key_dim,), 1)
    flat_values = random_block((pool * shape.kv_heads * shape.value_dim,), 2)
    queries, group = random_queries(shape), shape.heads // shape.kv_heads
    # contexts of equal length that stand together lie as [batch, kv_heads, context, width]
    assert found.shape == (len(contexts), shape.heads, shape.value_dim)
    for request, context in enumerate(contexts):
        for head in range(shape.heads):

            def rows(flat, width, place=(start, context, head // group)):
                first = place[0] * shape.kv_heads * width + place[2] * place[1] * width
                return flat[first : first + place[1] * width].reshape(place[1], width)

            keys = rows(flat_keys, shape.key_dim)
            values = keys[:, : shape.value_dim] if shape.latent else rows(flat_values, shape.value_dim)
            expected = naive(queries[head : head + 1], keys, values)[0]
            assert found[request, head] == pytest.approx(expected, abs=2e-5)
        start += context


def test_one_piece_and_chunks_are_the_same_attention():
    """On an accelerator scores are taken in one piece, which is run here on the processor's tensors."""
    pytest.importorskip("torch")
    contexts, start = (2 * CHUNK + 9,) * 2, 100
    backend = make_backend("torch", "cpu")
    chunked = backend.decode(LATENT, 10_000)(contexts, start).numpy()
    backend.is_host = False
    assert backend.decode(LATENT, 10_000)(contexts, start).numpy() == pytest.approx(chunked, abs=1e-5)
    assert backend.scratch_bytes(LATENT, 10**6) == 2 * 4 * 6 * 10**6
    assert backend.scratch_bytes(SMALL, 10**6) == 0


def test_torch_on_the_processor_says_what_it_is():
    torch = pytest.importorskip("torch")
    backend = make_backend("torch", "cpu", "bfloat16")
    assert (backend.device, backend.dtype, backend.itemsize, backend.is_host) == ("cpu", "bfloat16", 2, True)
    assert backend.account()["torch"] == torch.__version__
    assert backend.decode(SHAPES["qwen3-30b-a3b"], 100)((50,), 3).shape == (1, 32, 128)
    assert backend.decode(SHAPES["deepseek-v3"], 100)((50,), 3).shape == (1, 128, 512)
    assert float(backend.reader(4000)()) == 1000.0
    assert backend.clock(lambda: None) >= 0
    assert backend.scratch_bytes(SHAPES["deepseek-v3"], 10**6) == 2 * 2 * 128 * CHUNK
    with pytest.raises(InputError, match="unknown dtype 'float64': did you mean"):
        make_backend("torch", "cpu", "float64")


def test_memory_that_runs_out_is_one_sentence():
    torch = pytest.importorskip("torch")

    def full():
        raise torch.OutOfMemoryError("tried to allocate")

    with pytest.raises(InputError, match="cpu ran out of memory while measuring; give a smaller --most"):
        make_backend("torch", "cpu").clock(full)


class StubAccelerator(types.SimpleNamespace):
    """What torch.cuda, torch.npu and the like offer, with a queue whose work takes virtual milliseconds."""

    def __init__(self, **more):
        self.log, self.queue = [], 0.0
        accelerator = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                accelerator.log.append("record")
                self.at = accelerator.queue

            def elapsed_time(self, other):
                assert accelerator.log[-1] == "synchronize"  # an event that has not happened has no time
                return other.at - self.at

        super().__init__(
            **{
                "Event": Event,
                "is_available": lambda: True,
                "device_count": lambda: 2,
                "set_device": lambda index: self.log.append(f"device {index}"),
                "synchronize": lambda: self.log.append("synchronize"),
                "mem_get_info": lambda: (5 * 10**9, 8 * 10**9),
                "get_device_name": lambda: "Stub 9000",
            }
            | more
        )


def stub_torch(**kinds):
    return types.SimpleNamespace(__version__="9.9", version=types.SimpleNamespace(cuda="13.1", hip=None), **kinds)


@pytest.mark.parametrize("kind", ["cuda", "npu", "xpu"])
def test_accelerators_are_timed_by_events_on_their_own_queue(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_npu", types.SimpleNamespace(__version__="2.7"))
    accelerator = StubAccelerator()
    place = TorchDevice(stub_torch(**{kind: accelerator}), f"{kind}:1")

    def work():
        accelerator.log.append("work")
        accelerator.queue += 12.0

    assert place.clock(work) == pytest.approx(0.012)
    assert accelerator.log == ["device 1", "synchronize", "record", "work", "record", "synchronize"]
    assert place.free_bytes() == 5 * 10**9
    account = place.account()
    assert account["device"] == "Stub 9000"
    assert account.get("cuda_runtime") == ("13.1" if kind == "cuda" else None)
    assert account.get("torch_npu") == ("2.7" if kind == "npu" else None)


def test_without_events_the_wall_between_synchronisations_is_taken():
    accelerator = StubAccelerator(Event=None)
    place = TorchDevice(stub_torch(xpu=accelerator), "xpu")
    assert 0 <= place.clock(lambda: accelerator.log.append("work")) < 1
    assert accelerator.log == ["synchronize", "work", "synchronize"]


def test_apples_module_is_another():
    metal = types.SimpleNamespace(
        synchronize=lambda: None,
        recommended_max_memory=lambda: 100,
        driver_allocated_memory=lambda: 30,
        event=types.SimpleNamespace(Event=StubAccelerator().Event),
    )
    backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: True))
    place = TorchDevice(stub_torch(mps=metal, backends=backends))
    assert (place.name, place.free_bytes()) == ("mps", 70)
    assert place.title()


def test_the_first_device_there_is_and_none_that_is_not():
    away = StubAccelerator(is_available=lambda: False)
    torch = stub_torch(cuda=away, xpu=StubAccelerator())
    assert TorchDevice(torch).name == "xpu"
    assert TorchDevice(stub_torch(cuda=away)).name == "cpu"
    for device, said in {
        "cuda": "device 'cuda' is not available: torch 9.9 finds no cuda here",
        "npu": "device 'npu' is not available",
        "xpu:2": "device 'xpu:2' does not exist; xpu has 2 here, numbered from 0",
        "xpu:-1": "device 'xpu:-1' does not exist",
        "xpuu": "unknown device 'xpuu': did you mean xpu",
    }.items():
        with pytest.raises(InputError, match=said):
            TorchDevice(torch, device)


def test_ascends_package_hangs_itself_into_torch(monkeypatch):
    """`torch.npu` appears when torch_npu is imported; without that package there is no such device."""
    torch = stub_torch()
    real = importlib.import_module

    def install(name):
        if name != "torch_npu":
            return real(name)
        torch.npu = StubAccelerator()
        return types.SimpleNamespace(__version__="2.7")

    monkeypatch.setattr("importlib.import_module", install)
    assert TorchDevice(torch, "npu").account()["torch_npu"] == "2.7"


def test_torch_that_is_not_installed_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendUnavailableError, match=r"install 'lbopt\[measure\]', or take --backend numpy"):
        make_backend("torch")


def test_numpy_refuses_other_devices_and_numbers():
    with pytest.raises(InputError, match=r"unknown device 'cuda'.*for accelerators take torch"):
        NumpyBackend("cuda")
    with pytest.raises(InputError, match="dtype 'bfloat16' is not one of backend numpy"):
        NumpyBackend(None, "bfloat16")


def test_importing_the_package_imports_no_torch():
    code = "import sys, lbopt.hardware.measure; sys.exit('torch' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0


def test_the_account_names_nobody():
    import getpass
    import platform

    text = " ".join([*NumpyBackend().account().values(), *host_account("numpy", "no-such-package").values()])
    assert platform.node() not in text or len(platform.node()) < 4
    assert "/" not in text
    assert getpass.getuser() not in text.lower().split()


def test_the_driver_is_read_from_the_kernel(monkeypatch):
    line = "NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"
    monkeypatch.setattr("lbopt.hardware.measure.backend._line", lambda file, key: line)
    assert nvidia_driver() == "535.104.05"
    monkeypatch.setattr("lbopt.hardware.measure.backend._line", lambda file, key: None)
    assert nvidia_driver() is None
