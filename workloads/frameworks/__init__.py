"""What differs between frameworks and not between workloads.

Each module here has a class ``Framework``, made from a cell: it sets the variables that must stand
before the import, imports the framework, configures it and checks what it can be asked for. See
``workloads.frameworks.torch``.
"""

import importlib
import inspect
import os

from workloads.fault import Fault

BFLOAT16_CAPABILITY = (8, 0)
"""Oldest compute capability that computes in bfloat16."""
NEWEST = {"9.0": (7, 0), "9.2": (7, 2), "10.0": (7, 5), "10.1": (7, 5), "10.2": (7, 5)}
"""By CUDA's version, the newest compute capability that its compiler and its libraries have code for, of the
release notes; later ones are asked of the framework's build itself."""
AT_ONCE = "none: a CPU's operations return when they are done"
"""Synchronisation of versions that have no call for it."""
FORBIDDEN = (
    "DNNL_DEFAULT_FPMATH_MODE",
    "NVIDIA_TF32_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "PYTORCH_JIT",
    "TF_SET_ONEDNN_FPMATH_MODE",
    "TF_XLA_FLAGS",
    "TORCHDYNAMO_DISABLE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_COMPILE_DISABLE",
)
"""Variables that turn a variant into another, or a precision, behind what is set and read back."""


def load(cell):
    """Import and configure the cell's framework, and return its ``Framework``.

    Raises:
        Fault: it cannot be imported, or lacks the device or the precision.
    """
    for name in FORBIDDEN:
        if name in os.environ:
            raise Fault(
                "settings", "%s is set, which changes what a variant or a precision is; unset it" % name
            )
    threads = str(cell["threads"]["intra_op"])
    # OpenMP and MKL read these once, when their libraries load.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = threads
    if cell["device"] == "cpu":
        # Hidden rather than unused: a framework that sees a GPU takes memory and time from it.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    # By default the fastest GPU is the first; N means what nvidia-smi means by it.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    name = cell["framework"]
    try:
        module = importlib.import_module("workloads.frameworks." + name)
        # An older version may speak another interface.
        return (module.choose() if hasattr(module, "choose") else module.Framework)(cell)
    except ImportError as error:
        raise Fault("import", "%s cannot be imported: %s" % (name, error))


def check_kernels(framework, kernels, capability):
    """See that a framework's build has code for a GPU, before anything is timed.

    Args:
        framework: its name, for the message.
        kernels: what it was built for: ``sm_90``, ``sm_100a``, ``compute_90``. Binary code runs on the
            same major version and no older minor one, code marked ``a`` or ``f`` on its own only; PTX
            (``compute``) is compiled by the driver for any newer GPU.
        capability: of the GPU: (major, minor).

    Returns:
        warnings: none, or that the driver has to compile everything first.

    Raises:
        Fault: nothing in it runs on this GPU.
    """
    ptx = False
    for kernel in kernels:
        kind, _, name = kernel.partition("_")
        digits = name.rstrip("af")
        if not digits.isdigit():
            continue
        built = (int(digits[:-1]), int(digits[-1]))
        if kind == "sm" and (built == tuple(capability) if digits != name else _is_within(built, capability)):
            return []
        ptx = ptx or (kind == "compute" and built <= tuple(capability))
    if ptx:
        return ["the driver compiles this %s for the GPU, which takes many minutes at first" % framework]
    raise Fault(
        "device",
        "this %s has no code for compute capability %d.%d (it has %s); choose another stack"
        % (framework, capability[0], capability[1], ", ".join(kernels) or "none"),
    )


def check_cuda(framework, cuda, capability):
    """See that a build which does not tell what it was built for knows a GPU, before anything is timed.

    Args:
        framework: its name, for the message.
        cuda: version of CUDA that it brings, such as ``9.0.176``.
        capability: of the GPU: (major, minor).

    Raises:
        Fault: this CUDA is older than the GPU, or unknown.
    """
    version = ".".join((cuda or "").split(".")[:2])
    newest = NEWEST.get(version)
    if newest is None or capability[0] > newest[0]:
        raise Fault(
            "device",
            "this %s brings CUDA %s, which has no code for compute capability %d.%d; choose another stack"
            % (framework, version or "none", capability[0], capability[1]),
        )


def return_at_once():
    """Wait for a CPU whose framework has no call for it: what it was told to do is done by then."""


def keep_known(function, **arguments):
    """Leave out the arguments that this version of a function does not have: all of them are switches for
    something that it cannot do."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in known}


def order_version(version):
    """Turn ``1.3.0+cu92`` into (1, 3)."""
    return tuple(int(part) for part in version.split(".")[:2])


def _is_within(built, capability):
    return built[0] == capability[0] and built[1] <= capability[1]


def gpu_index(cell):
    """Return the index of the cell's GPU among those that this process sees, or ``None`` for ``cpu``: N of
    ``cuda:N``, unless the host showed this process fewer and says which one it is.

    Raises:
        Fault: the device is neither.
    """
    device = cell["device"]
    if device == "cpu":
        return None
    kind, _, index = device.partition(":")
    if kind != "cuda" or not index.isdigit():
        raise Fault("device", "device %r is neither cpu nor cuda:N" % device)
    seen = cell.get("device_index")
    return int(index) if seen is None else seen
