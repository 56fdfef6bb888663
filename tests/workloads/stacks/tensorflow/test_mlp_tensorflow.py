"""The MLP in TensorFlow, against the committed trajectory, whole and with each thing broken that matters."""

import os
import types

import keras
import pytest
import tensorflow as tf

from tests.workloads.fakes import make_cell
from tests.workloads.stacks.broken.mlp_tensorflow import make_breaks
from workloads import frameworks, measurement, proof
from workloads.fault import Fault
from workloads.frameworks import tensorflow as adapter
from workloads.mlp import tensorflow as module

VARIANTS = ("tensorflow-eager", "tensorflow-graph", "tensorflow-xla")


def cell(**changes):
    defaults = {
        "framework": "tensorflow",
        "module": "tensorflow",
        "variant": "tensorflow-eager",
        "threads": {"intra_op": 2, "inter_op": 2},
    }
    return make_cell(**dict(defaults, **changes))


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    return frameworks.load(cell(cache=str(tmp_path_factory.mktemp("cache"))))


def prove(framework, **changes):
    return proof.prove(cell(purpose="proof", **changes), framework)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("edition", "measure"), [("fair", "step"), ("article", "call")])
def test_every_variant_does_the_same_work(framework, variant, edition, measure):
    proved = prove(framework, variant=variant, edition=edition, measures=[measure])
    assert max(check["error"] for check in proved["checks"]) < 1e-9
    assert proved["holds"]


BREAKS = make_breaks(keras, tf.compat.v1.train)


@pytest.mark.parametrize("name", sorted(BREAKS))
def test_a_broken_side_fails_its_proof(framework, monkeypatch, name):
    """P3, P5"""
    BREAKS[name](monkeypatch)
    assert not prove(framework)["holds"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_measured_launch_reports_what_ran(framework, variant):
    limits = dict(make_cell()["protocol"], budget_s=0.2, warmup_s=0.1)
    answer = measurement.measure(cell(variant=variant, protocol=limits), framework, 0.0)
    assert answer["status"] == "measured"
    assert answer["losses"]["error"] < 1e-6
    assert answer["device"]["observed"] == "cpu"
    assert answer["settings"]["threads_intra_op"] == 2
    assert (
        answer["settings"]["compiler"]
        == {"eager": "none", "graph": "tf.function", "xla": "xla"}[variant[11:]]
    )
    assert answer["settings"]["keras"] == keras.__version__
    assert answer["synchronisation"] == "tf.test.experimental.sync_devices"


def test_the_article_traces_ten_steps_once(framework, monkeypatch):
    """T6: the second call traces nothing, and the first holds ten steps."""
    traced = []
    real = tf.math.squared_difference
    monkeypatch.setattr(tf.math, "squared_difference", lambda a, b: traced.append(1) or real(a, b))
    subject = module.build(cell(variant="tensorflow-graph", edition="article"), framework, "float32")
    assert len(subject.units["call"]()) == 10
    assert len(traced) == 10
    subject.units["call"]()
    assert len(traced) == 10


def test_xla_is_asked_for_explicitly_and_not_left_to_auto(framework):
    """T9"""
    for variant, expected in (("tensorflow-graph", False), ("tensorflow-xla", True)):
        compiled = module.build(cell(variant=variant), framework, "float32").units["step"]
        assert compiled.get_concrete_function().function_def.attr["_XlaMustCompile"].b is expected


def test_a_gpu_that_is_not_there_is_a_clear_fault(framework):
    absent = types.SimpleNamespace(index=0, tf=tf)
    with pytest.raises(Fault, match="TensorFlow sees 0 CUDA GPUs, and so no cuda:0"):
        adapter.Framework._choose_device(absent)


def fake_tf(gpus):
    calls = []
    config = types.SimpleNamespace(
        list_physical_devices=lambda kind: gpus,
        set_visible_devices=lambda devices, kind: calls.append(("visible", tuple(devices))),
        get_visible_devices=lambda kind: [],
        experimental=types.SimpleNamespace(
            set_memory_growth=lambda gpu, on: calls.append(("growth", gpu, on)),
            enable_tensor_float_32_execution=lambda on: calls.append(("tf32", on)),
            get_device_details=lambda gpu: {"compute_capability": (7, 5), "device_name": "T4"},
        ),
    )
    build = {"cuda_compute_capabilities": ["sm_60", "sm_70", "compute_90"]}
    sysconfig = types.SimpleNamespace(get_build_info=lambda: build)
    return types.SimpleNamespace(config=config, sysconfig=sysconfig), calls


def test_the_chosen_gpu_is_the_only_visible_one_and_its_memory_grows():
    """N2 and the settings that decide: nothing is left to a default."""
    tf_, calls = fake_tf(["gpu0", "gpu1"])
    assert adapter.Framework._choose_device(types.SimpleNamespace(index=1, tf=tf_)) == "gpu1"
    assert calls == [("visible", ("gpu1",)), ("growth", "gpu1", True)]


def test_a_gpu_that_cannot_be_hidden_stops_a_launch_for_the_cpu():
    """N2"""
    tf_, _ = fake_tf(["gpu0"])
    tf_.config.get_visible_devices = lambda kind: ["gpu0"]
    with pytest.raises(Fault, match="would not let go of the GPU"):
        adapter.Framework._choose_device(types.SimpleNamespace(index=None, tf=tf_))


@pytest.mark.parametrize(("precision", "on"), [("fp32", False), ("tf32", True)])
def test_precision_on_a_gpu_is_set_both_ways(precision, on):
    """T8"""
    tf_, calls = fake_tf(["gpu0"])
    adapter.Framework._set_precision(types.SimpleNamespace(precision=precision, gpu="gpu0", tf=tf_))
    assert calls == [("tf32", on)]


def test_tf32_on_a_cpu_is_skipped_with_the_reason():
    with pytest.raises(Fault, match="TF32 is a format of GPUs") as caught:
        adapter.Framework._set_precision(types.SimpleNamespace(precision="tf32", gpu=None, tf=tf))
    assert caught.value.status == "skipped"


def test_bfloat16_computes_in_bfloat16(framework, monkeypatch):
    monkeypatch.setattr(framework, "precision", "bf16")
    seen = []
    real = tf.cast
    subject = module.build(cell(precision="bf16"), framework, "float32")

    def watch(value, dtype, **arguments):
        seen.append(getattr(value, "dtype", None))
        return real(value, dtype, **arguments)

    monkeypatch.setattr(tf, "cast", watch)
    loss = subject.units["step"]()
    assert tf.bfloat16 in seen
    limits = dict(cell()["tolerances"], losses=2e-2)
    assert proof.judge_losses(dict(cell(), tolerances=limits), [float(loss)])["holds"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_step_reads_nothing_from_the_device(framework, monkeypatch, variant):
    """T16"""
    subject = module.build(cell(variant=variant), framework, "float32")
    for measure in ("step", "call"):
        subject.units[measure]()

    eager = type(tf.constant(1.0))
    real = eager._numpy

    def read(tensor):
        # TensorFlow's own gradients read axes, which are whole numbers and never on a device.
        assert not tensor.dtype.is_floating, "a value was read while training"
        return real(tensor)

    for name in ("_numpy", "numpy", "__float__", "__bool__"):
        monkeypatch.setattr(eager, name, read)
    for measure in ("step", "call"):
        subject.units[measure]()
    assert subject.host_reads == {}


def test_the_device_is_read_from_what_was_computed():
    """C2"""
    gpu = types.SimpleNamespace(device="/job:localhost/replica:0/task:0/device:GPU:0")
    cpu = types.SimpleNamespace(device="/job:localhost/replica:0/task:0/device:CPU:0")
    # The chosen GPU is the only visible one, and the first whatever its number.
    read = adapter.Framework.device_of
    assert read(types.SimpleNamespace(index=3, tf=tf), gpu) == "cuda:3"
    assert read(types.SimpleNamespace(index=3, tf=tf), cpu) == "cpu"


def test_the_device_is_waited_for_by_tensorflows_own_call(framework):
    """T1, T2"""
    assert framework.synchronise is tf.test.experimental.sync_devices


def test_xla_is_never_left_to_a_default(framework, monkeypatch):
    """T9: neither by TensorFlow's own clustering nor by a function's jit_compile."""
    asked = []
    monkeypatch.setattr(tf.config.optimizer, "set_jit", asked.append)
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", lambda count: None)
    monkeypatch.setattr(tf.config.threading, "set_inter_op_parallelism_threads", lambda count: None)
    frameworks.load(cell())
    assert asked == [False]
    compiled = []
    monkeypatch.setattr(tf, "function", lambda function, jit_compile=None: compiled.append(jit_compile))
    for variant in ("tensorflow-graph", "tensorflow-xla"):
        module.build(cell(variant=variant), framework, "float32")
    # Steps, calls and gradients of each.
    assert compiled == [False] * 3 + [True] * 3


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(Fault, match="Keras computes by jax"):
        frameworks.load(cell())


def test_keras_is_told_its_backend(monkeypatch):
    """Even where the user's own setting says another."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    frameworks.load(cell())
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
