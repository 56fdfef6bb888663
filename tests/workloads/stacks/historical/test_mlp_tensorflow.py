"""The MLP in TensorFlow 1.12 and 2.0, against the trajectory that judges today's, whole and broken."""

import pytest
import tensorflow as tf

from tests.workloads.fakes import make_cell
from tests.workloads.proofs import list_failing
from tests.workloads.stacks.broken.mlp_tensorflow import make_breaks
from tests.workloads.stacks.historical.conftest import THREADS
from workloads import frameworks, measurement, proof
from workloads.fault import Fault
from workloads.mlp import tensorflow as module

VARIANTS = ("tensorflow-eager", "tensorflow-graph")
# TensorFlow 1.12 has what 2.0 has at ``compat.v1`` at its top.
OPTIMISERS = tf.train if tf.__version__.startswith("1.") else tf.compat.v1.train
NAMES = sorted(make_breaks(tf.keras, OPTIMISERS))


def cell(variant="tensorflow-eager", **changes):
    said = {"framework": "tensorflow", "module": "tensorflow", "variant": variant, "threads": THREADS}
    return make_cell(**dict(said, **changes))


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    return frameworks.load(cell(cache=str(tmp_path_factory.mktemp("cache"))))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("edition", "measure"), [("fair", "step"), ("article", "call")])
def test_every_variant_does_the_same_work(framework, variant, edition, measure):
    proved = proof.prove(cell(variant, purpose="proof", edition=edition, measures=[measure]), framework)
    assert list_failing(proved) == set()
    assert max(check["error"] for check in proved["checks"]) < 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_side_fails_its_proof(framework, monkeypatch, name):
    # 2.0 may have put another module there meanwhile: it loads its parts when they are asked for.
    make_breaks(tf.keras, framework.v1.train)[name](monkeypatch)
    assert not proof.prove(cell(purpose="proof"), framework)["holds"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_measured_launch_reports_what_ran(framework, variant):
    limits = dict(make_cell()["protocol"], budget_s=0.2, warmup_s=0.1)
    answer = measurement.measure(cell(variant, protocol=limits), framework, 0.0)
    assert answer["status"] == "measured"
    assert answer["losses"]["error"] < 1e-5
    assert answer["device"]["observed"] == "cpu"
    settings = answer["settings"]
    assert (settings["threads_intra_op"], settings["threads_inter_op"]) == (2, 3)
    assert settings["compiler"] == {"tensorflow-eager": "none", "tensorflow-graph": "tf.function"}[variant]
    assert settings["keras"] == tf.keras.__version__
    assert answer["synchronisation"].startswith("none:")


def test_the_article_traces_ten_steps_once(framework, monkeypatch):
    traced = []
    real = tf.math.squared_difference
    monkeypatch.setattr(tf.math, "squared_difference", lambda a, b: traced.append(1) or real(a, b))
    subject = module.build(cell("tensorflow-graph", edition="article"), framework, "float32")
    assert len(subject.units["call"]()) == 10
    count = len(traced)
    subject.units["call"]()
    assert count == len(traced) == 10


def test_xla_is_not_in_these_builds_and_is_skipped_with_the_reason(framework):
    with pytest.raises(Fault, match="has no XLA in this build") as caught:
        module.build(cell("tensorflow-xla"), framework, "float32")
    assert caught.value.status == "skipped"
