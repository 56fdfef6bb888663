"""What driving a loader costs: each one of the MNIST match beside a bare script of the same pipeline.

Run by the interpreter of the stack, after a bench session made tfds's files:
``.venvs/torch-2.15-tfds-4.9/bin/python -m benchmarks.loader_overhead [VARIANT...]``

Each variant has a process of its own, as in a launch; in it, epochs by the harness and by the script take
turns. Printed are the medians, their ratio, and for ``tensor-resident`` what the harness adds to a batch, and
how far plain copies of as many bytes are.
"""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time

VARIANTS = (
    "torchvision-workers-0",
    "torchvision-workers-4",
    "torchvision-workers-4-persistent",
    "tfds-untuned",
    "tfds-autotune",
    "tfds-cache",
    "tfds-cache-late",
    "tfds-small-shuffle",
    "tfds-own-tensors",
    "tfds-own-builder",
    "data-source",
    "tensor-resident",
)
BATCH = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("variants", nargs="*", metavar="VARIANT")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=60000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.child:
        print(json.dumps(compare(said.child, said.rounds, said.images)))
        return
    for variant in said.variants or VARIANTS:
        command = [sys.executable, "-m", "benchmarks.loader_overhead", "--child", variant]
        command += ["--rounds", str(said.rounds), "--images", str(said.images)]
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        print(describe(variant, json.loads(answer.stdout.splitlines()[-1]), said.images), flush=True)


def describe(variant, found, images):
    batches = -(-images // BATCH)
    ours, bare = (statistics.median(found[name]) for name in ("ours", "bare"))
    ratio = statistics.median(one / other for one, other in zip(found["ours"], found["bare"], strict=False))
    line = f"{variant:34} ours {1e3 * ours:8.1f} ms, bare {1e3 * bare:8.1f} ms: {ratio:.3f}x"
    if "copy" in found:
        copy = statistics.median(found["copy"])
        line += "; {:.2f} us a batch, of which the loop {:.3f} us; {:.2f} times a copy".format(
            1e6 * ours / batches,
            1e6 * statistics.median(found["loop"]) / batches,
            ours / copy,
        )
    return line


def compare(variant, rounds, images):
    """Time epochs by the harness and by a script, in turns; the first of each apart."""
    from workloads import __main__ as program
    from workloads import cell as cells
    from workloads import frameworks

    cell = cells.from_arguments(program.parse(["mnist", variant]))
    cell["parameters"].update(load_images=images)
    cell.update(measures=["load_epoch"], cache=tempfile.mkdtemp())
    framework = frameworks.load(cell)
    if cell["framework"] == "torch_tfds":
        from workloads.mnist import tfds

        tfds.RECIPES[variant].tuned = False
    module = __import__("workloads.mnist.{}".format(cell["module"]), fromlist=["build"])
    subject = module.build(cell, framework, "float32")
    epochs = {"ours": subject.units["load_epoch"], "bare": make_bare(variant, cell["data"], images)}
    if variant == "tensor-resident":
        epochs["copy"] = make_copy(images)
        epochs["loop"] = make_loop(subject, images)
    found = {name: [] for name in epochs}  # type: dict
    for number in range(rounds + 1):
        for name, epoch in itertools.islice(itertools.cycle(epochs.items()), number, number + len(epochs)):
            begin = time.perf_counter()
            epoch()
            if number:
                found[name].append(time.perf_counter() - begin)
    subject.close()
    return found


def make_bare(variant, data, images):
    """Write the pipeline as a script would, without anything of this project's."""
    if variant.startswith("torchvision"):
        return bare_torchvision(variant, data, images)
    return {"data-source": bare_data_source, "tensor-resident": bare_resident}.get(variant, bare_tfds)(
        variant, data, images
    )


def bare_torchvision(variant, data, images):
    import torch
    from torchvision import datasets, transforms

    whole = datasets.MNIST(data["folder"], train=True, transform=transforms.ToTensor())
    words = variant.split("-")
    loader = torch.utils.data.DataLoader(
        whole if images == len(whole) else torch.utils.data.Subset(whole, range(images)),
        BATCH,
        shuffle=True,
        num_workers=int(words[2]),
        persistent_workers=words[-1] == "persistent",
    )

    def epoch():
        for _images, _labels in loader:
            pass

    return epoch


def bare_data_source(variant, data, images):
    import tensorflow_datasets as tfds
    import torch

    path = "{}/{}/array_record/idx/1.0.0".format(data["folder"], data["derived"])
    source = tfds.builder_from_directory(path).as_data_source(split="train")

    class Pairs(torch.utils.data.Dataset):
        def __len__(self):
            return images

        def __getitems__(self, indices):
            return [
                (torch.from_numpy(one["image"]).permute(2, 0, 1).float() / 255, one["label"])
                for one in source.__getitems__(indices)
            ]

    loader = torch.utils.data.DataLoader(Pairs(), BATCH, shuffle=True, num_workers=4)

    def epoch():
        for _images, _labels in loader:
            pass

    return epoch


def bare_resident(variant, data, images):
    import torch
    from torchvision import datasets

    whole = datasets.MNIST(data["folder"], train=True)
    pixels = whole.data[:images].unsqueeze(1).float() / 255
    labels = whole.targets[:images]

    def epoch():
        for index in torch.randperm(images).split(BATCH):
            pixels.index_select(0, index)
            labels.index_select(0, index)

    return epoch


def bare_tfds(variant, data, images):
    import tensorflow as tf
    import tensorflow_datasets as tfds
    import torch

    tune, fixed = tf.data.AUTOTUNE, ("tfds-article", "tfds-untuned")
    path = "{}/{}/tfrecord/idx/1.0.0".format(data["folder"], data["derived"])
    config = tfds.ReadConfig(try_autocache=False)
    files = tfds.builder_from_directory(path).as_dataset(
        split="train", as_supervised=True, read_config=config
    )
    files = files.take(images)

    def scale(pixels, labels):
        return tf.transpose(tf.cast(pixels, tf.float32) / 255.0, [0, 3, 1, 2]), labels

    if variant in ("tfds-cache", "tfds-cache-late", "tfds-own-builder"):
        dataset = files.cache() if variant == "tfds-cache" else files
    else:
        dataset = tf.data.Dataset.from_tensor_slices(next(files.batch(images).as_numpy_iterator()))
    dataset = dataset.shuffle(1024 if variant == "tfds-small-shuffle" else images).batch(BATCH)
    dataset = dataset.map(scale, num_parallel_calls=4 if variant in fixed else tune)
    if variant == "tfds-cache-late":
        dataset = dataset.cache()
    dataset = dataset.prefetch(5 if variant in fixed else tune)
    options = tf.data.Options()
    options.autotune.enabled = False
    # The tuner's thread decides when an epoch ends, to the next of 10, 20, 40 ms and so on: ours is told to
    # do without as well.
    dataset = dataset.with_options(options)

    def epoch():
        for pixels, labels in dataset.as_numpy_iterator():
            torch.from_numpy(pixels.copy())
            torch.from_numpy(labels.copy())

    return epoch


def make_copy(images):
    """Copy as many bytes as an epoch hands out, into memory that is there."""
    import torch

    whole = torch.ones(images, 1, 28, 28)
    target = torch.empty_like(whole)
    return lambda: target.copy_(whole)


def make_loop(subject, images):
    """Run the harness's loop over batches that are there already: what it adds by itself."""
    match = subject.units["load_epoch"].__self__
    batches = list(match.loaders["load"].epoch("train"))

    class Ready:
        resident, closing_s = True, None

        def epoch(self, split):
            return iter(batches)

        def close(self):
            pass

    def epoch():
        real = match.loaders["load"]
        match.loaders["load"] = Ready()
        try:
            subject.units["load_epoch"]()
        finally:
            match.loaders["load"] = real

    return epoch


if __name__ == "__main__":
    main()
