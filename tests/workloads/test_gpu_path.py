"""The GPU path of both frameworks, as far as it goes without a GPU: what is called, set and read back. That
the names exist in the real packages is tested in the stacks."""

import os
import sys
import types

import pytest

from tests.workloads.fakes import make_cell
from workloads.fault import Fault
from workloads.frameworks import tensorflow as tensorflow_module
from workloads.frameworks import torch as torch_module


class Namespace(object):
    def __init__(self, **members):
        self.__dict__.update(members)


class FakeTorch(types.ModuleType):
    """Two GPUs of capability 9.0, and a record of what was called."""

    def __init__(self):
        super(FakeTorch, self).__init__("torch")
        self.__version__ = "2.15.0"
        self.calls = []
        self.precision = None
        self.threads = {}
        self.float32 = "float32"
        self.bfloat16 = "bfloat16"
        self.version = Namespace(cuda="13.2")
        self.cpu = Namespace(synchronize=lambda: self.calls.append("cpu"))
        self.cuda = Namespace(
            is_available=lambda: True,
            device_count=lambda: 2,
            get_device_capability=lambda index: (9, 0),
            get_arch_list=lambda: ["sm_80", "sm_90"],
            synchronize=lambda index: self.calls.append(("synchronize", index)),
            max_memory_allocated=lambda index: 1000 + index,
            get_device_properties=lambda index: Namespace(name="H", major=9, minor=0, total_memory=80),
        )
        self.backends = Namespace(
            cudnn=Namespace(benchmark=True, allow_tf32=True, version=lambda: 92600),
            cuda=Namespace(matmul=Namespace(allow_tf32=False)),
            mkldnn=Namespace(enabled=True),
            cpu=Namespace(get_cpu_capability=lambda: "AVX2"),
        )

    def device(self, text):
        return Namespace(type=text.partition(":")[0], text=text)

    def set_num_threads(self, count):
        self.threads["intra"] = count

    def set_num_interop_threads(self, count):
        self.threads["inter"] = count

    def get_num_threads(self):
        return self.threads["intra"]

    def get_num_interop_threads(self):
        return self.threads["inter"]

    def manual_seed(self, seed):
        self.calls.append(("seed", seed))

    def set_float32_matmul_precision(self, precision):
        self.precision = precision
        self.backends.cuda.matmul.allow_tf32 = precision != "highest"

    def get_float32_matmul_precision(self):
        return self.precision

    def are_deterministic_algorithms_enabled(self):
        return False

    def get_default_dtype(self):
        return self.float32

    def autocast(self, kind, dtype):
        return ("autocast", kind, dtype)


@pytest.fixture
def torch(monkeypatch):
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def on_gpu(precision="fp32", index=0, device="cuda:1"):
    return make_cell(device=device, device_index=index, precision=precision)


def test_torch_waits_for_the_one_gpu_that_it_computes_on(torch):
    """T1, T2"""
    framework = torch_module.Framework(on_gpu())
    framework.synchronise()
    assert torch.calls[-1] == ("synchronize", 0)
    assert framework.synchronisation == "torch.cuda.synchronize"
    assert framework.place.text == "cuda:0"


@pytest.mark.parametrize(
    ("precision", "matmul", "tf32"),
    [("fp32", "highest", False), ("tf32", "high", True), ("bf16", "highest", False)],
)
def test_torch_computes_in_the_precision_that_is_asked_for_and_says_so(torch, precision, matmul, tf32):
    """T8: both of its switches, for products and for convolutions."""
    framework = torch_module.Framework(on_gpu(precision))
    assert torch.backends.cudnn.allow_tf32 is tf32
    settings = framework.settings()
    assert (settings["torch.float32_matmul_precision"], settings["tf32"]) == (matmul, tf32)


def test_torch_computes_bfloat16_under_autocast_only_where_it_is_asked_for(torch):
    assert torch_module.Framework(on_gpu("bf16")).autocast() == ("autocast", "cuda", "bfloat16")
    assert torch_module.Framework(on_gpu()).autocast() is torch_module.NOTHING


def test_torch_does_not_autotune_unless_a_variant_is_about_it(torch):
    """T7"""
    framework = torch_module.Framework(on_gpu())
    assert torch.backends.cudnn.benchmark is False
    assert framework.settings()["autotune"] is False


def test_torch_tells_the_gpu_and_its_memory(torch):
    framework = torch_module.Framework(on_gpu(index=1))
    assert framework.describe_device()["capability"] == "9.0"
    assert framework.describe_device()["memory_bytes"] == 80
    assert framework.peak_device_bytes() == 1001


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"is_available": lambda: False}, "sees no CUDA GPU"),
        ({"device_count": lambda: 0}, "there is no cuda:0; torch sees 0"),
        ({"get_arch_list": lambda: ["sm_120"]}, "no code for compute capability 9.0"),
    ],
)
def test_torch_is_not_measured_on_a_gpu_that_it_cannot_use(torch, change, words):
    """C1, C3"""
    torch.cuda.__dict__.update(change)
    with pytest.raises(Fault, match=words) as caught:
        torch_module.Framework(on_gpu())
    assert caught.value.kind == "device"


def test_torch_skips_bfloat16_where_it_would_be_emulated(torch):
    torch.cuda.get_device_capability = lambda index: (7, 5)
    torch.cuda.get_arch_list = lambda: ["sm_75"]
    with pytest.raises(Fault, match="does not compute in bfloat16") as caught:
        torch_module.Framework(on_gpu("bf16"))
    assert caught.value.status == "skipped"


class FakeTensorFlow(types.ModuleType):
    """Two GPUs of capability 8.9, and a record of what was set and in which order."""

    def __init__(self):
        super(FakeTensorFlow, self).__init__("tensorflow")
        self.set = []
        self.threads = {}
        self.visible = ["GPU:0", "GPU:1"]
        self.tf32 = True
        self.growth = {}
        self.capability = (8, 9)
        experimental = Namespace(
            get_device_details=lambda gpu: {"compute_capability": self.capability, "device_name": "L"},
            set_memory_growth=self._grow,
            get_memory_growth=lambda gpu: self.growth.get(gpu, False),
            enable_tensor_float_32_execution=self._set_tf32,
            tensor_float_32_execution_enabled=lambda: self.tf32,
            get_memory_info=lambda device: {"current": 1, "peak": 77},
        )
        threading = Namespace(
            set_intra_op_parallelism_threads=lambda count: self.threads.update(intra=count),
            set_inter_op_parallelism_threads=lambda count: self.threads.update(inter=count),
            get_intra_op_parallelism_threads=lambda: self.threads["intra"],
            get_inter_op_parallelism_threads=lambda: self.threads["inter"],
        )
        self.config = Namespace(
            threading=threading,
            experimental=experimental,
            optimizer=Namespace(set_jit=lambda on: self.set.append(("jit", on)), get_jit=lambda: ""),
            list_physical_devices=lambda kind: ["GPU:0", "GPU:1"],
            set_visible_devices=self._show,
            get_visible_devices=lambda kind: list(self.visible),
            functions_run_eagerly=lambda: False,
        )
        self.random = Namespace(set_seed=lambda seed: None)
        self.test = Namespace(experimental=Namespace(sync_devices=lambda: self.set.append("sync")))
        self.sysconfig = Namespace(
            get_build_info=lambda: {
                "cuda_version": "12.5.1",
                "cudnn_version": "9",
                "cuda_compute_capabilities": ["sm_80", "sm_89", "compute_90"],
            }
        )
        self.DeviceSpec = Namespace(
            from_string=lambda text: Namespace(device_type=text.split(":")[-2], device_index=0)
        )

    def _show(self, devices, kind):
        self.set.append(("visible", list(devices)))
        self.visible = list(devices)

    def _grow(self, gpu, on):
        self.set.append(("growth", gpu))
        self.growth[gpu] = on

    def _set_tf32(self, on):
        self.tf32 = on


@pytest.fixture
def tensorflow(monkeypatch):
    fake = FakeTensorFlow()
    keras = types.ModuleType("keras")
    keras.config = Namespace(backend=lambda: "tensorflow")
    keras.__version__ = "3"
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    monkeypatch.setitem(sys.modules, "keras", keras)
    monkeypatch.setattr(tensorflow_module, "_determinism", lambda tf: False)
    for name in ("KERAS_BACKEND", "KERAS_HOME", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    return fake


def test_tensorflow_sees_the_one_gpu_and_takes_its_memory_as_it_needs_it(tensorflow):
    """N2: growth is set before anything could start the GPU."""
    framework = tensorflow_module.Framework(on_gpu(index=1))
    assert tensorflow.set[:2] == [("visible", ["GPU:1"]), ("growth", "GPU:1")]
    assert framework.settings()["memory_growth"] is True
    assert framework.place == "/GPU:0"
    assert framework.peak_device_bytes() == 77


def test_tensorflow_waits_for_its_devices(tensorflow):
    """T1, T2"""
    framework = tensorflow_module.Framework(on_gpu())
    framework.synchronise()
    assert tensorflow.set[-1] == "sync"
    assert framework.synchronisation == "tf.test.experimental.sync_devices"


@pytest.mark.parametrize(("precision", "tf32"), [("fp32", False), ("tf32", True), ("bf16", False)])
def test_tensorflow_computes_in_the_precision_that_is_asked_for_and_says_so(tensorflow, precision, tf32):
    """T8"""
    framework = tensorflow_module.Framework(on_gpu(precision))
    assert framework.settings()["tf32"] is tf32
    assert framework.policy("float32") == ("mixed_bfloat16" if precision == "bf16" else "float32")


def test_tensorflow_compiles_nothing_on_its_own(tensorflow):
    """T9"""
    tensorflow_module.Framework(on_gpu())
    assert ("jit", False) in tensorflow.set


@pytest.mark.parametrize(
    ("place", "seen"),
    [("/job:localhost/task:0/device:GPU:0", "cuda:1"), ("/job:localhost/task:0/device:CPU:0", "cpu")],
)
def test_where_tensorflow_computed_is_read_from_the_tensor(tensorflow, place, seen):
    """C2"""
    framework = tensorflow_module.Framework(on_gpu(index=1))
    assert framework.device_of(Namespace(device=place)) == seen


def test_tensorflow_that_keeps_hold_of_the_gpu_is_not_measured_on_the_cpu(tensorflow):
    """N2"""
    tensorflow.config.set_visible_devices = lambda devices, kind: None
    with pytest.raises(Fault, match="would not let go of the GPU"):
        tensorflow_module.Framework(make_cell(device="cpu"))


def test_tensorflow_says_that_the_driver_has_to_compile_first(tensorflow):
    """C3"""
    tensorflow.capability = (12, 0)
    assert "takes many minutes" in tensorflow_module.Framework(on_gpu()).warnings[0]
    tensorflow.capability = (7, 0)
    with pytest.raises(Fault, match=r"no code for compute capability 7\.0"):
        tensorflow_module.Framework(on_gpu())


def test_tensorflow_without_the_gpu_that_is_asked_for_is_not_measured(tensorflow):
    """C1"""
    tensorflow.config.list_physical_devices = lambda kind: []
    with pytest.raises(Fault, match="sees 0 CUDA GPUs, and so no cuda:0"):
        tensorflow_module.Framework(on_gpu())
