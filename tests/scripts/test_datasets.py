from scripts import idx
from scripts.datasets import load_datasets
from scripts.prepared import identify

MNIST = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Sha256 of MNIST's files as others publish them."""


def test_mnist_is_pinned_by_what_its_unpacked_files_are_known_to_be() -> None:
    """D2: unpacked files are all that is left of a download."""
    found = identify({str(idx.RAW / name): sha256 for name, sha256 in MNIST.items()})
    assert load_datasets()["mnist"].sha256 == found


def test_every_set_of_the_project_has_an_identity_and_tells_its_nature() -> None:
    known = load_datasets()
    counts = {name: (data.format, data.images["train"], data.images["test"]) for name, data in known.items()}
    assert counts == {
        "digits": ("mnist", 60000, 10000),
        "mnist": ("mnist", 60000, 10000),
        "shapes": ("cifar-10", 50000, 10000),
        "cifar-10": ("cifar-10", 50000, 10000),
    }
    # Of CIFAR-10's unpacked files nobody publishes checksums: its one archive has one.
    assert [name for name, data in known.items() if data.sha256 is None] == ["cifar-10"]
    assert known["cifar-10"].archives == {
        "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    }
    assert "not MNIST" in known["digits"].nature
    assert "not CIFAR-10" in known["shapes"].nature
    for name in ("mnist", "cifar-10"):
        assert known[name].mirrors
        assert all(mirror.startswith("https://") for mirror in known[name].mirrors)
