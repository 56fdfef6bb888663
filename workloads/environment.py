"""What a result says of where it was made. By allow-list: never the user's other variables."""

import os
import platform
import re
import sys

from workloads import machine

# Variables that can change how fast or how exactly a framework computes.
PREFIXES = (
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "GOMP_",
    "KERAS_",
    "KMP_",
    "MALLOC_",
    "MKL_",
    "NVIDIA_TF32_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTORCH_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TRITON_",
    "XLA_",
    # TensorFlow's, one by one: Terraform has the prefix TF_ too, and secrets in TF_VAR_.
    "TF_AUTOTUNE_",
    "TF_CPP_",
    "TF_CUDA",
    "TF_CUDNN_",
    "TF_DETERMINISTIC_",
    "TF_DISABLE_",
    "TF_ENABLE_",
    "TF_FORCE_",
    "TF_GPU_",
    "TF_MKL_",
    "TF_NUM_",
    "TF_ONEDNN_",
    "TF_SET_",
    "TF_USE_",
    "TF_XLA_",
)
# Places, which differ from launch to launch and change nothing.
PLACES = ("_DIR", "_PATH", "_HOME")


def describe():
    """Describe this process's surroundings, as the contract's ``Environment``."""
    return {
        "machine": machine.describe(),
        "python": platform.python_version(),
        "packages": packages(),
        "variables": variables(os.environ),
    }


def variables(environ):
    """Pick the variables of ``environ`` that matter to a measurement."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(PREFIXES) and not name.endswith(PLACES)
    }


def packages():
    """Return the version of every distribution installed for this interpreter, by name.

    From the names of their folders, which say both on every Python and cost no parsing.
    """
    found = {}
    for folder in sys.path:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            match = re.match(r"([^-]+)-([^-]+)(-.*)?\.(dist|egg)-info$", name)
            # The first on the path is the one that is imported.
            if match and normalise(match.group(1)) not in found:
                found[normalise(match.group(1))] = match.group(2)
    return found


def normalise(name):
    """Spell a distribution's name as indexes do (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
