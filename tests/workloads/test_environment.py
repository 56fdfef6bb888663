import sys

import numpy

from workloads import environment


def test_variables_are_taken_by_allow_list():
    """Secrets of other programs stay out, Terraform's included, whose prefix is TensorFlow's."""
    environ = {
        "KMP_BLOCKTIME": "0",
        "OMP_NUM_THREADS": "2",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "XLA_FLAGS": "--x",
        "KERAS_BACKEND": "tensorflow",
        "TF_VAR_password": "secret",
        "TF_CLI_CONFIG_FILE": "/home/someone/.terraformrc",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HOME": "/home/someone",
        "TORCHINDUCTOR_CACHE_DIR": "/home/someone/cache",
    }
    assert environment.variables(environ) == {
        "KERAS_BACKEND": "tensorflow",
        "KMP_BLOCKTIME": "0",
        "OMP_NUM_THREADS": "2",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "XLA_FLAGS": "--x",
    }


def test_a_distribution_is_told_by_its_folder(tmp_path, monkeypatch):
    for name in ("typing_extensions-4.16.0.dist-info", "Old.Style-1.0-py3.6.egg-info", "typing_extensions"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), "/nonexistent"])
    assert environment.packages() == {"typing-extensions": "4.16.0", "old-style": "1.0"}


def test_installed_packages_have_their_versions():
    assert environment.packages()["numpy"] == numpy.__version__
