"""Power by what a device does, on devices that draw known watts, and NVIDIA's counter on a stub."""

import sys
import types

import numpy as np
import pytest
from hardware.fake_backend import FakeBackend, Heard, linear
from hardware.test_measure_backends import StubAccelerator, stub_torch

from lbopt.hardware.measure import MeasureConfig, make_card, measure
from lbopt.hardware.measure import power as room
from lbopt.hardware.measure.power import NvidiaCounter, PowerTimes, State, nvidia_counter
from lbopt.hardware.measure.timing import Estimate
from lbopt.hardware.measure.torch_backend import SPIN_CYCLES, TorchDevice
from lbopt.report.measure_report import measure_tables, power_csv

WATTS = {"idle": 70.0, "wait": 150.0, "busy": 400.0}


class Accelerator(FakeBackend):
    is_host = False


@pytest.fixture
def sleeping(monkeypatch):
    """Measure with a host that sleeps in the backend's own time."""

    def run(backend, **options):
        whole = room.measure_power
        monkeypatch.setattr(
            "lbopt.hardware.measure.measurement.measure_power",
            lambda *given, **named: whole(*given, **named, sleep=backend.sleep),
        )
        chosen = {"budget": 200.0, "attention": ("qwen3-30b-a3b",), "most": 262_144, "power_seconds": 1.0}
        return measure(MeasureConfig(**(chosen | options)), backend, Heard(), now=backend.now)

    return run


def test_each_state_draws_what_the_device_draws(sleeping):
    found = sleeping(Accelerator(linear, watts=WATTS), layers=("llama-3-70b",))
    middle = {name: one.value for name, one in found.power.medians.items()}
    assert middle["idle"] == pytest.approx(70)
    assert middle["paused: a launch every 5 ms"] == pytest.approx(70, rel=0.01)
    assert middle["spins: 1 thread"] == pytest.approx(151)
    assert middle["spins: 132 blocks of 1024"] == pytest.approx(282)
    busy = [name for name in middle if name.startswith(("attention", "products", "square", "plain"))]
    assert len(busy) == 5
    assert all(middle[name] == pytest.approx(400) for name in busy)
    assert found.power.share("spins: 1 thread") == pytest.approx((151 - 70) / (400 - 70))
    assert all(len(seen) == 3 for seen in found.power.watts.values())
    assert len(power_csv(found.power)) == 3 * len(middle)
    assert "Power of the board by what it does" in [table.title for table in measure_tables(found)]
    card = make_card(found)
    assert card["idle_power"].value == pytest.approx(70)
    assert card["peak_power"].value == pytest.approx(400)
    assert set(card.account["power"]["waiting_share"]) == {
        "paused: a launch every 5 ms",
        "spins: 1 thread",
        "spins: 16 blocks of 512",
        "spins: 132 blocks of 1024",
    }


def test_without_a_counter_or_a_wish_there_is_no_power(sleeping):
    assert sleeping(Accelerator(linear)).power is None
    found = sleeping(Accelerator(linear, watts=WATTS), power=False)
    assert found.power is None
    assert "idle_power" not in make_card(found).constants


def test_power_that_does_not_fit_into_the_budget_is_left_out(sleeping):
    found = sleeping(Accelerator(linear, watts=WATTS), budget=20.0)
    assert found.power is None
    assert any("power is left out: 12 states take 50 s, more than half of the budget of 20 s" in n for n in found.notes)


def test_ctrl_c_keeps_the_windows_that_ended():
    backend = Accelerator(linear, watts=WATTS)

    def busy():
        if backend.time > 4.0:
            raise KeyboardInterrupt
        backend._pass(1e-3)

    states = [State("idle", "idle", None), State("busy", "busy", busy)]
    found = room.measure_power(
        states,
        backend,
        backend,
        seconds=1.0,
        rng=np.random.default_rng(0),
        now=backend.now,
        progress=Heard(),
        sleep=backend.sleep,
    )
    assert found.interrupted
    assert 1 <= sum(len(seen) for seen in found.watts.values()) < 6
    assert set(found.medians) == set(found.watts)


def test_a_share_needs_both_ends():
    states = [State("idle", "idle", None), State("w", "waiting", None), State("b", "busy", None)]
    known = PowerTimes(states, medians={"w": Estimate(5, 5, 5)})
    assert known.share("w") is None
    known.medians |= {"idle": Estimate(4, 4, 4), "b": Estimate(4, 4, 4)}
    assert known.share("w") is None  # busy draws no more than idle
    assert known.most().value == 5


class Nvml(types.SimpleNamespace):
    """NVML of one device; `energy` in mJ, `usage` in mW; None is refused."""

    class NVMLError(Exception):
        pass

    def __init__(self, energy=7_000, usage=90_000):
        super().__init__(energy=energy, usage=usage, asked=[])

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByIndex(self, index):
        self.asked.append(index)
        return "handle"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.asked.append(uuid)
        return "handle"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if self.energy is None:
            raise self.NVMLError
        return self.energy

    def nvmlDeviceGetPowerUsage(self, handle):
        if self.usage is None:
            raise self.NVMLError
        return self.usage


def test_the_drivers_counter_is_in_millijoules():
    nvml = Nvml()
    counter = NvidiaCounter(1, nvml=nvml)
    assert counter.joules() == 7.0
    assert nvml.asked == [1]
    assert NvidiaCounter(1, "1703747e-e135", nvml).joules() == 7.0
    assert nvml.asked == [1, "GPU-1703747e-e135"]


def test_a_device_without_a_counter_has_its_watts_added_up(monkeypatch):
    made = []
    monkeypatch.setattr(
        room.threading,
        "Thread",
        lambda target, daemon: made.append(target) or types.SimpleNamespace(start=lambda: None),
    )
    counter = NvidiaCounter(0, nvml=Nvml(energy=None))
    assert counter.joules() == 0.0
    clock = iter([0.0, 0.5, 1.0])
    monkeypatch.setattr(room.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(room.time, "sleep", lambda seconds: None)
    with pytest.raises(StopIteration):
        made[0]()
    assert counter.joules() == pytest.approx(90.0)


def test_no_package_no_driver_no_counter(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvidia_counter(0) is None
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(energy=None, usage=None))
    assert nvidia_counter(0) is None
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    assert nvidia_counter(0).joules() == 7.0


def test_the_counter_is_that_of_the_named_device(monkeypatch):
    nvml = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    properties = types.SimpleNamespace(uuid="abc")
    place = TorchDevice(stub_torch(cuda=StubAccelerator(get_device_properties=lambda index: properties)), "cuda:1")
    assert place.counter().joules() == 7.0
    assert nvml.asked == ["GPU-abc"]
    assert TorchDevice(stub_torch(xpu=StubAccelerator()), "xpu").counter() is None


def test_one_thread_waits_in_torchs_own_kernel_and_many_in_a_compiled_one():
    slept, launched = [], []

    def compile_kernel(source, name):
        assert name in source
        return lambda **given: launched.append((given["grid"], given["block"]))

    accelerator = StubAccelerator(_sleep=slept.append, _compile_kernel=compile_kernel)
    torch = stub_torch(cuda=accelerator)
    torch.int32, torch.zeros = "int32", lambda *size, **named: "flag"
    place = TorchDevice(torch, "cuda")
    place.spinner(1, 1)()
    assert slept == [SPIN_CYCLES]
    place.spinner(16, 512)()
    assert launched == [((16, 1, 1), (512, 1, 1))] * 2  # once to make it ready

    def fails(source, name):
        raise RuntimeError("no nvrtc")

    torch.cuda = StubAccelerator(_compile_kernel=fails)
    place = TorchDevice(torch, "cuda")
    assert place.spinner(16, 512) is None
    assert place.spinner(1, 1) is None


def test_streams_begin_together_and_end_together():
    log = []

    class Stream:
        def __init__(self, name="here"):
            self.name = name

        def wait_stream(self, other):
            log.append((self.name, "waits for", other.name))

        def __enter__(self):
            log.append(("in", self.name))

        def __exit__(self, *_):
            pass

    names = iter(["a", "b"])
    accelerator = StubAccelerator(Stream=lambda: Stream(next(names)), stream=lambda one: one, current_stream=Stream)
    place = TorchDevice(stub_torch(cuda=accelerator), "cuda")
    place.at_once([lambda call: log.append(call), lambda call: log.append(-call)])(3)
    assert log == [
        ("a", "waits for", "here"),
        ("in", "a"),
        3,
        ("b", "waits for", "here"),
        ("in", "b"),
        -3,
        ("here", "waits for", "a"),
        ("here", "waits for", "b"),
    ]
    assert TorchDevice(stub_torch(), "cpu").at_once([]) is None
