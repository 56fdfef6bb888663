"""What building DenseNet from the plan costs: a step of ours beside a step of a net that was not made here.

Run by the interpreter of a stack, after a bench session made its environment:
``.venvs/torch-2.15/bin/python -m benchmarks.densenet_overhead`` and
``.venvs/tensorflow-2.21/bin/python -m benchmarks.densenet_overhead``

Beside PyTorch's stands torchvision's own class with the same blocks, growth rate and bottleneck and our
stem; beside Keras's a plain functional model as its documentation writes one, trained by ``fit``. Steps take
turns in one process. Printed are the medians and the median of the ratios; for Keras also how much of
``fit`` is the harness's.
"""

import argparse
import cProfile
import importlib.util
import os
import pstats
import statistics
import tempfile
import time

from workloads import densenet, frameworks, machine
from workloads.densenet import plan, reference


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=15)
    said = parser.parse_args()
    framework = "torch" if importlib.util.find_spec("torch") else "tensorflow"
    cell = make_cell(framework, said.batch)
    ours, theirs = (compare_torch if framework == "torch" else compare_keras)(cell)
    for warm_up in (ours, theirs) * 3:
        warm_up()
    seconds = {
        "ours": [],
        "theirs": [],
    }  # type: dict[str, list[float]]
    for turn in range(said.rounds):
        for name, step in (("ours", ours), ("theirs", theirs))[:: 1 if turn % 2 else -1]:
            begin = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - begin)
    ratio = statistics.median(one / other for one, other in zip(*seconds.values(), strict=True))
    told = ", ".join(f"{name} {1e3 * statistics.median(values):.0f} ms" for name, values in seconds.items())
    print(f"{framework}, batch {said.batch}: {told}: {ratio:.3f}x")
    if framework == "tensorflow":
        print(profile_fit(ours))


def make_cell(framework, batch):
    parameters = dict(
        reference.PLAN, **reference.TRAINING, batch=batch, epochs=1, milestones=[0.5, 0.8],
        train_images=batch, validate_images=batch, validation_batch=batch,
    )  # fmt: skip
    threads = machine.usable_cpus()
    return {
        "purpose": "measure", "edition": "fair", "device": "cpu", "precision": "fp32", "framework": framework,
        "variant": "torch-autotune-off" if framework == "torch" else "keras-fit", "measures": ["step"],
        "parameters": parameters, "threads": {"intra_op": threads, "inter_op": threads},
        "cache": tempfile.mkdtemp(prefix="rematch-cache-"), "seed": 0, "block": 0, "data": None,
    }  # fmt: skip


def compare_torch(cell):
    framework = frameworks.load(cell)
    import torch
    from torchvision.models import DenseNet

    from workloads.densenet import torch as module

    parameters = cell["parameters"]
    net = DenseNet(
        growth_rate=parameters["growth_rate"],
        block_config=tuple(parameters["blocks"]),
        num_init_features=parameters["stem_channels"],
        bn_size=parameters["bottleneck"] // parameters["growth_rate"],
        num_classes=plan.CLASSES,
    )
    net.features.conv0 = torch.nn.Conv2d(3, parameters["stem_channels"], 3, padding=1)
    net.features.norm0 = net.features.relu0 = net.features.pool0 = torch.nn.Identity()
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=2e-4)
    criterion = torch.nn.CrossEntropyLoss()
    images, labels = densenet.draw_batch(parameters)
    images = torch.from_numpy(images).permute(0, 3, 1, 2).float().contiguous()
    labels = torch.from_numpy(labels)

    def theirs():
        optimiser.zero_grad()
        scores = net(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimiser.step()
        loss.item()
        scores.argmax(1).eq(labels).sum().item()

    return module.build(cell, framework, "float32").units["step"], theirs


def compare_keras(cell):
    os.environ["KERAS_BACKEND"] = "tensorflow"
    framework = frameworks.load(cell)
    import keras
    import tensorflow as tf
    from keras import layers

    from workloads.densenet import keras as module

    parameters = cell["parameters"]

    def activate(x):
        return layers.Activation("relu")(layers.BatchNormalization()(x))

    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(parameters["stem_channels"], 3, padding="same")(inputs)
    for block, count in enumerate(parameters["blocks"]):
        if block:
            x = layers.Conv2D(x.shape[-1] // 2, 1)(activate(x))
            x = layers.AveragePooling2D(2)(x)
        for _ in range(count):
            new = layers.Conv2D(parameters["bottleneck"], 1)(activate(x))
            new = layers.Conv2D(parameters["growth_rate"], 3, padding="same")(activate(new))
            x = layers.Concatenate()([x, new])
    x = layers.GlobalAveragePooling2D()(activate(x))
    model = keras.Model(inputs, layers.Dense(plan.CLASSES)(x))
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=False,
    )
    images, labels = densenet.draw_batch(parameters)
    batches = tf.data.Dataset.from_tensors((tf.constant(images, tf.float32), tf.constant(labels))).repeat()
    # As in the match, or both would wait for the tuner's thread.
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = batches.with_options(options)
    return (
        module.build(cell, framework, "float32").units["step"],
        lambda: model.fit(batches, epochs=1, steps_per_epoch=1, verbose=0),
    )


def profile_fit(step):
    """Say how much of a step by ``fit`` is spent outside of it."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(5):
        step()
    profile.disable()
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    whole_s = next(one[3] for key, one in found.items() if key[2] == "__call__" and "densenet" in key[0])
    fit_s = next(one[3] for key, one in found.items() if key[2] == "fit" and "trainer" in key[0])
    return (
        f"fit is {fit_s:.3f} s of {whole_s:.3f} s in five samples: the harness adds {1 - fit_s / whole_s:.2%}"
    )


if __name__ == "__main__":
    main()
