"""What is in the stacks' images, seen in containers without a GPU and without a network."""

import json
import re
from typing import Any

import pytest

from scripts.engine import Engine
from scripts.images import BuiltImage, find_image
from scripts.lock import read_pins
from scripts.stacks import Stack, load_stacks

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


def run(engine: Engine, image: str, code: str, **said: Any) -> Any:
    """Run Python in a container as a launch is confined, and return what it printed last, as JSON."""
    api = engine.api
    host = api.create_host_config(
        network_mode="none", read_only=True, tmpfs={"/tmp": "exec,mode=1777"}, cap_drop=["ALL"]
    )
    container = api.create_container(
        image,
        ["python", "-c", code],
        host_config=host,
        user=said.pop("user", "54321:54321"),
        environment={"HOME": "/tmp", "USER": "somebody", "TF_CPP_MIN_LOG_LEVEL": "2", **said},
    )["Id"]
    try:
        api.start(container)
        status = api.wait(container, timeout=300)["StatusCode"]
        output = api.logs(container).decode(errors="replace")
        assert status == 0, output
        return json.loads(output.splitlines()[-1])
    finally:
        api.remove_container(container, force=True)


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
    assert variables["NVIDIA_REQUIRE_CUDA"] == f"cuda>={stack.cuda.partition('.')[0]}.0"
    assert "NVIDIA_VISIBLE_DEVICES" in variables
    assert config["User"].partition(":")[0] not in ("", "0", "root")


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
    there = run(engine, image.id, code)
    pins = read_pins(stack.lock_for("docker"))
    assert {name.replace(".", "-"): {version} for name, version in there.items()} == pins
    assert {name: there[name] for name in stack.frameworks if name in there} == {
        name: version for name, version in stack.frameworks.items() if name in there
    }


LIBRARIES = """
import ctypes, glob, json, os, re, struct, subprocess
missing = []
def needed(path):
    # The names of an ELF file's own needs, by the dynamic section that ldd walks too.
    answer = subprocess.run(["ldd", path], capture_output=True, text=True)
    return re.findall(r"^\\s*(\\S+) => not found", answer.stdout, re.M)
paths = glob.glob("/opt/stack/lib/python3*/site-packages/**/*.so*", recursive=True)
here = set(map(os.path.basename, paths))
for path in paths:
    if not os.path.islink(path):
        # What a package brings itself, it loads before by its path.
        missing += [(name, os.path.basename(path)) for name in needed(path) if name not in here]
opened = {}
for name in NAMES:
    try:
        ctypes.CDLL(name)
        opened[name] = True
    except OSError as error:
        opened[name] = str(error)
cudnn = {os.path.realpath(path) for path in glob.glob("/opt/stack/lib/**/libcudnn.so.*", recursive=True)}
print(json.dumps({"missing": sorted(set(missing)), "opened": opened, "cudnn": len(cudnn)}))
"""
OPENED = {
    "torch": ["libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"],
    "tensorflow": [
        "libcudart.so.12",
        "libcublas.so.12",
        "libcublasLt.so.12",
        "libcufft.so.11",
        "libcusolver.so.11",
        "libcusparse.so.12",
        "libcudnn.so.9",
        "libnccl.so.2",
        "libnvrtc.so.12",
        "libnvJitLink.so.12",
        "libcupti.so.12",
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
    (framework,) = [name for name in OPENED if name in stack.frameworks]
    seen = run(engine, image.id, f"NAMES = {OPENED[framework]!r}\n{LIBRARIES}")
    assert {name: opened for name, opened in seen["opened"].items() if opened is not True} == {}
    lacking = {name for name, _ in seen["missing"]} - DRIVER
    assert not [name for name in lacking if not re.match(NETWORKS, name)], seen["missing"]
    assert seen["cudnn"] == 1


ARCHITECTURES = {
    "torch": "import json, torch; print(json.dumps(torch._C._cuda_getArchFlags().split()))",
    "tensorflow": "import json, tensorflow as tf\n"
    'print(json.dumps(list(tf.sysconfig.get_build_info()["cuda_compute_capabilities"])))',
}


def test_the_table_of_stacks_tells_what_the_packages_have_code_for(
    engine: Engine, stack: Stack, image: BuiltImage
) -> None:
    """C3"""
    (framework,) = [name for name in ARCHITECTURES if name in stack.frameworks]
    kernels = run(engine, image.id, ARCHITECTURES[framework])
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
    assert run(engine, found.id, code) == [3.0] * 8


def test_tensorflow_compiles_for_a_user_whom_the_image_does_not_know(engine: Engine) -> None:
    found = find_image(engine, STACKS["tensorflow-2.21"], None)
    assert found is not None
    code = """
import json, keras, tensorflow as tf
layer = keras.layers.Dense(2, kernel_initializer="ones")
step = tf.function(lambda x: layer(x), jit_compile=True)
print(json.dumps(step(tf.ones([1, 3])).numpy().tolist()))
"""
    assert run(engine, found.id, code) == [[3.0, 3.0]]


def test_what_an_import_compiles_is_in_the_image_already(engine: Engine, image: BuiltImage) -> None:
    code = """
import glob, json, os
sources = glob.glob("/opt/stack/lib/python3*/site-packages/numpy/**/*.py", recursive=True)
there = [os.path.exists(__import__("importlib.util").util.cache_from_source(path)) for path in sources]
print(json.dumps([len(there), sum(there)]))
"""
    count, compiled = run(engine, image.id, code)
    assert count > 100
    assert compiled == count
