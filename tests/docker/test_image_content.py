"""What is in the stacks' images, seen in containers without a GPU and without a network."""

import re

import pytest

from scripts.engine import Engine
from scripts.images import BuiltImage, find_image
from scripts.lock import read_pins
from scripts.preflight import find_required_cuda
from scripts.stacks import Stack, load_stacks
from tests.docker.programs import run_program, run_python

STACKS = load_stacks()


@pytest.fixture(scope="module", params=[name for name, stack in STACKS.items() if stack.current])
def stack(request: pytest.FixtureRequest) -> Stack:
    return STACKS[str(request.param)]


@pytest.fixture
def image(engine: Engine, stack: Stack) -> BuiltImage:
    found = find_image(engine, stack, None)
    if found is None:
        pytest.fail(
            f"{stack.name} has no image that is up to date: `nox -s images`, with --base local offline"
        )
    return found


def test_an_image_says_what_it_is_and_asks_for_the_driver_that_it_needs(
    engine: Engine, stack: Stack, image: BuiltImage
) -> None:
    """C8"""
    config = engine.api.inspect_image(image.id)["Config"]
    labels = config["Labels"]
    assert (labels["rematch.stack"], labels["rematch.input"]) == (stack.name, image.input_sha256)
    assert labels["rematch.base"] == image.base
    assert labels["org.opencontainers.image.title"].startswith("Rematch")
    variables = dict(entry.split("=", 1) for entry in config["Env"])
    assert variables["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert variables["PATH"].startswith("/opt/stack/bin:")
    assert variables["NVIDIA_REQUIRE_CUDA"] == f"cuda>={find_required_cuda([stack])}"
    # None for who does not ask.
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", config["User"])
    assert (config["Entrypoint"], config["WorkingDir"]) == (None, "/rematch")
    assert labels["org.opencontainers.image.base.name"] == image.base.partition("@")[0]
    assert labels["org.opencontainers.image.base.digest"] == image.base.partition("@")[2]


def test_the_packages_are_those_of_the_lock_and_fit_together(
    engine: Engine, stack: Stack, image: BuiltImage
) -> None:
    """N4"""
    code = """
import json
from importlib import metadata
there = {one.metadata["Name"]: one.version for one in metadata.distributions()}
print(json.dumps({name.lower().replace("_", "-"): version for name, version in there.items()}))
"""
    there = run_python(engine, image.id, code)
    pins = read_pins(stack.lock_for("docker"))
    assert {name.replace(".", "-"): {version} for name, version in there.items()} == pins
    assert {name: there[name] for name in stack.frameworks if name in there} == {
        name: version for name, version in stack.frameworks.items() if name in there
    }


LIBRARIES = """
import ctypes, glob, json, os, re, subprocess
packages = "/opt/stack/lib/python3*/site-packages/"
paths = [path for path in glob.glob(packages + "**/*.so*", recursive=True) if not os.path.islink(path)]
# What a framework brings itself it loads first, by its path. CUDA's are found by name or not at all.
own = {os.path.basename(path) for path in paths if "/nvidia/" not in path}
missing = []
for path in paths:
    said = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    names = re.findall(r"^\\s*(\\S+) => not found", said, re.M)
    missing += [(name, os.path.basename(path)) for name in names if name not in own]
opened = {}
for name in NAMES:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        opened[name] = str(error)
cudnn = {os.path.realpath(path) for path in glob.glob("/opt/stack/lib/**/libcudnn.so.*", recursive=True)}
print(json.dumps({"files": len(paths), "missing": sorted(missing), "opened": opened, "cudnn": len(cudnn)}))
"""
OPENED = {
    "torch": [
        *("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libcufft.so.12"),
        *("libcufile.so.0", "libcusolver.so.12", "libcusparse.so.12", "libcusparseLt.so.0"),
        *("libnccl.so.2", "libnvrtc.so.13", "libnvJitLink.so.13", "libcupti.so.13"),
    ],
    "tensorflow": [
        *("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9", "libcufft.so.11"),
        *("libcurand.so.10", "libcusolver.so.11", "libcusparse.so.12"),
        *("libnccl.so.2", "libnvrtc.so.12", "libnvJitLink.so.12", "libcupti.so.12"),
    ],
}
DRIVER = {"libcuda.so.1", "libnvidia-ml.so.1"}
"""Of the host, put in by the toolkit."""
NETWORKS = r"lib(mlx5|ibverbs|rdmacm|fabric|mpi|oshmem|pmix|ucp|ucs|uct)\b"
"""Of networks between machines, which nothing here uses."""


def test_every_library_of_cuda_is_found_by_its_name_without_a_gpu(
    engine: Engine, stack: Stack, image: BuiltImage
) -> None:
    """N4: and there is one cuDNN."""
    # Where there are both, PyTorch has the GPU.
    framework = next(name for name in OPENED if name in stack.frameworks)
    seen = run_python(engine, image.id, f"NAMES = {OPENED[framework]!r}\n{LIBRARIES}")
    assert seen["files"] > 100
    assert seen["opened"] == {}
    lacking = [(name, path) for name, path in seen["missing"] if name not in DRIVER]
    assert [name for name, _ in lacking if not re.match(NETWORKS, name)] == [], lacking
    assert seen["cudnn"] == 1


def test_the_compilers_for_the_gpu_run(engine: Engine, stack: Stack, image: BuiltImage) -> None:
    find = "find /opt/stack/lib -name 'ptxas*' -type f -path '*/bin/*'"
    said = run_program(engine, image.id, ["sh", "-euc", f'for one in $({find}); do "$one" --version; done'])
    assert "NVIDIA" in said


ARCHITECTURES = {
    "torch": "import json, torch; print(json.dumps(torch._C._cuda_getArchFlags().split()))",
    "tensorflow": "import json, tensorflow as tf\n"
    'print(json.dumps(list(tf.sysconfig.get_build_info()["cuda_compute_capabilities"])))',
}


def test_the_table_of_stacks_tells_what_the_packages_have_code_for(
    engine: Engine, stack: Stack, image: BuiltImage
) -> None:
    """C3"""
    framework = next(name for name in ARCHITECTURES if name in stack.frameworks)
    kernels = run_python(engine, image.id, ARCHITECTURES[framework])
    built = {kind: set() for kind in ("sm", "compute")}  # type: dict[str, set[str]]
    for kernel in kernels:
        kind, _, digits = kernel.partition("_")
        built[kind].add(f"{digits[:-1]}.{digits[-1]}")
    assert built["sm"] == set(stack.capabilities)
    newest = max(built["compute"], key=lambda text: tuple(map(int, text.split("."))), default=None)
    assert newest == stack.ptx


def test_torch_compiles_for_a_user_whom_the_image_does_not_know(engine: Engine) -> None:
    found = find_image(engine, STACKS["torch-2.15"], None)
    assert found is not None
    code = """
import json, torch
compiled = torch.compile(lambda x: torch.relu(x) * 2 + 1)
print(json.dumps(compiled(torch.ones(8)).tolist()))
"""
    assert run_python(engine, found.id, code) == [3.0] * 8


def test_tensorflow_compiles_for_a_user_whom_the_image_does_not_know(engine: Engine) -> None:
    found = find_image(engine, STACKS["tensorflow-2.21"], None)
    assert found is not None
    code = """
import json, keras, tensorflow as tf
layer = keras.layers.Dense(2, kernel_initializer="ones")
step = tf.function(lambda x: layer(x), jit_compile=True)
print(json.dumps(step(tf.ones([1, 3])).numpy().tolist()))
"""
    assert run_python(engine, found.id, code) == [[3.0, 3.0]]


def test_a_module_of_c_compiles_against_python(engine: Engine) -> None:
    """As triton makes what starts its kernels."""
    found = find_image(engine, STACKS["torch-2.15"], None)
    assert found is not None
    code = """
import json, subprocess, sysconfig
with open("/tmp/one.c", "w") as file:
    file.write("#include <Python.h>\\nint one(void) { return Py_IsInitialized(); }")
include = "-I" + sysconfig.get_path("include")
print(subprocess.call(["cc", "-shared", "-fPIC", include, "/tmp/one.c", "-o", "/tmp/one.so"]))
"""
    assert run_python(engine, found.id, code) == 0


def test_nothing_is_compiled_at_an_import(engine: Engine, stack: Stack, image: BuiltImage) -> None:
    """The root is read-only, so that each launch would pay for it."""
    framework = "torch" if "torch" in stack.frameworks else "keras"
    code = f"""
import json, os, struct, sys
import {framework}
def is_fresh(spec):
    if not os.path.exists(spec.cached):
        return False
    source = os.stat(spec.origin)
    with open(spec.cached, "rb") as file:
        return struct.unpack("<II", file.read(16)[8:]) == (int(source.st_mtime), source.st_size)
specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
specs = [spec for spec in specs if getattr(spec, "cached", None)]
print(json.dumps([len(specs), [spec.name for spec in specs if not is_fresh(spec)]]))
"""
    count, stale = run_python(engine, image.id, code)
    assert count > 500
    assert stale == []


def test_every_file_of_a_package_is_there_in_its_size(engine: Engine, image: BuiltImage) -> None:
    code = """
import json
from importlib import metadata
files = [file for one in metadata.distributions() for file in one.files if file.size]
print(json.dumps([len(files), [str(file) for file in files if file.locate().stat().st_size != file.size]]))
"""
    count, wrong = run_python(engine, image.id, code)
    assert count > 10_000
    assert wrong == []
