"""Loaders that fork, each in a process of its own, as a launch is one."""

import json
import os

import pytest

from tests.workloads.stacks.programs import launch, measure, run

SABOTAGE = """
import os, signal, sys, time
import torch
from workloads import __main__
from workloads.mnist import torchvision, workers
real = torchvision.subset
class Bad(torch.utils.data.Dataset):
    def __init__(self, inner): self.inner = inner
    def __len__(self): return len(self.inner)
    def __getitem__(self, index):
        if index == 100: {act}
        return self.inner[index]
torchvision.subset = lambda dataset, count: Bad(real(dataset, count))
workers.loader.WAIT_S = 5
sys.exit(__main__.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("variant", "module"),
    [
        ("torchvision-workers-2", "torchvision"),
        ("torchvision-workers-4-persistent", "torchvision"),
        ("data-source", "data_source"),
    ],
)
def test_loaders_with_workers_do_the_same_work_and_are_measured(make, tmp_path, variant, module):
    """T13"""
    cell = make(variant, module, "torch")
    proved = measure(dict(cell, purpose="proof"), tmp_path)
    assert proved["status"] == "proved", proved.get("cause")
    assert abs(proved["proof"]["figures"]["shuffle_rank_correlation"]) < 0.2
    answer = measure(dict(cell, measures=["load_epoch", "train_validate_epoch"]), tmp_path)
    assert answer["status"] == "measured", answer.get("cause")
    load, both = answer["measures"]
    assert (load["loop"], load["work"]["images"], both["work"]["images"]) == ("loader", 640, 548)
    assert 0 < load["figures"]["first_batch_s"] < load["samples_s"][0] * 2
    assert load["figures"]["cpu_s_per_image"] > 0
    assert set(both["series"]) == {
        "epoch_s",
        "loss",
        "validation_loss",
        "validation_accuracy",
        "waiting_share",
    }
    assert all(0 < share < 1 for share in both["series"]["waiting_share"])
    assert both["series"]["loss"][0] > both["series"]["loss"][-1]
    assert answer["memory"]["peak_tree_bytes"] > 0


@pytest.mark.parametrize(
    ("variant", "outlive"), [("torchvision-workers-2", False), ("torchvision-workers-2-persistent", True)]
)
def test_workers_outlive_an_epoch_where_the_variant_says_so(make, tmp_path, variant, outlive):
    """T14"""
    cell = make(variant, "torchvision", "torch")
    program = """
import json, sys
from workloads import frameworks
from workloads.mnist import match, torchvision
cell = json.loads(sys.argv[1])
framework = frameworks.load(cell)
loader = torchvision.open_loader(cell, framework, match.make_order(cell, framework, {"train": 640}))
pids = []
for epoch in range(2):
    batches = loader.epoch("train")
    pids.append(sorted(worker.pid for worker in batches._workers))
    assert sum(len(labels) for _, labels in batches) == 640
print(json.dumps([pids, loader.settings["persistent_workers"]]))
"""
    status, said = run(program, json.dumps(dict(cell, cache=str(tmp_path))))
    assert status == 0, said
    pids, told = json.loads(said.splitlines()[-1])
    assert (pids[0] == pids[1], told) == (outlive, outlive)
    assert [len(epoch) for epoch in pids] == [2, 2]


@pytest.mark.parametrize(
    ("act", "words"),
    [("os.kill(os.getpid(), signal.SIGKILL)", "DataLoader worker (pid"), ("time.sleep(600)", "timed out")],
)
def test_a_worker_that_dies_or_hangs_in_mid_epoch_is_a_failed_row_and_no_hang(make, tmp_path, act, words):
    cell = make("torchvision-workers-2", "torchvision", "torch")
    arguments, path = launch(cell, tmp_path)
    status, said = run(SABOTAGE.format(act=act), *arguments)
    assert status == 0, said
    with open(path) as file:
        answer = json.load(file)
    assert (answer["status"], answer["cause"]["kind"]) == ("failed", "loader-worker")
    assert words in answer["cause"]["message"]


def test_a_launch_leaves_no_worker_behind(make, tmp_path):
    measure(make("torchvision-workers-2-persistent", "torchvision", "torch"), tmp_path)
    left = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    left += [name] if str(tmp_path).encode() in file.read() else []
            except OSError:
                continue
    assert left == []
