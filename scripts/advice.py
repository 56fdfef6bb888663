"""What engines, drivers and registries say when something is missing, and what the user can do about it."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """A message understood."""

    kind: str
    message: str
    """One line: what is wrong and the remedy."""


# Texts are those of Docker and containerd, NVIDIA's Container Toolkit and driver, PyTorch, TensorFlow,
# Debian's package manager and registries. The first that matches is taken, so what is special stands above
# what is general.
_TABLE = (
    (
        "cdi",
        r"failed to discover GPU vendor from CDI|unresolvable CDI devices"
        r"|could not select device driver \"cdi\"",
        "the container engine knows no GPU by CDI: make its specification "
        "(`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`), or enable CDI in the engine",
    ),
    (
        "toolkit",
        r"could not select device driver|nvidia-container-runtime.*not found"
        r"|unknown or invalid runtime name: nvidia",
        "the container engine cannot hand over a GPU: install the NVIDIA Container Toolkit, run "
        "`sudo nvidia-ctk runtime configure --runtime=docker` and restart the engine (a snap build of Docker "
        "has no place for it: install Docker's own packages)",
    ),
    (
        "driver",
        r"unsatisfied condition: cuda ?>=|CUDA driver version is insufficient|cudaErrorInsufficientDriver"
        r"|forward compatibility was attempted on non supported|error 35\b|error 804\b|driver is too old"
        r"|unsupported toolchain|UNSUPPORTED_PTX_VERSION",
        "the NVIDIA driver is too old for this stack's CUDA: install the driver that docker/stacks.toml "
        "names for it, or a newer one",
    ),
    (
        "gpu-lost",
        r"GPU is lost|GPU has fallen off the bus|Unable to determine the device handle"
        r"|(?:CUDA|driver).*device (?:is )?(?:unavailable|not ready|lost)|Failed to initialize NVML"
        r"|unrecoverable GPU error|\bXid\b.*\b(?:79|119|154)\b|cudaErrorDevicesUnavailable",
        "the GPU disappeared: see `nvidia-smi` and the kernel's log (`sudo dmesg | grep -i xid`), then go on "
        "with --resume",
    ),
    (
        "driver-absent",
        r"nvidia-container-cli: initialization error|libnvidia-ml\.so\.1: cannot open|driver not loaded"
        r"|couldn't communicate with the NVIDIA driver",
        "no NVIDIA driver is loaded on this host: install it, load it (`sudo modprobe nvidia`), and see that "
        "`nvidia-smi` lists the GPU",
    ),
    (
        "no-such-gpu",
        r"nvidia-container-cli: device error.*unknown device|unknown device: *GPU-",
        "the container engine does not know this GPU: compare with `nvidia-smi -L`, and restart the engine",
    ),
    (
        "kernels",
        r"no kernel image is available|cudaErrorNoKernelImageForDevice",
        "the stack's packages have no code for this GPU: choose a stack whose `capabilities` in "
        "docker/stacks.toml hold it",
    ),
    (
        "shared-memory",
        r"insufficient shared memory|bus error|\(shm\)",
        "shared memory too small for loader workers: fewer workers need less of it",
    ),
    (
        "disk",
        r"no space left on device|disk quota exceeded",
        "no space left on the disk: free some (`docker system df` shows what the engine holds, `docker image "
        "prune` removes what nothing names), then go on",
    ),
    (
        "registry-limit",
        r"toomanyrequests|rate limit",
        "the registry's rate limit is reached: wait, log in (`docker login`), or build on `--base local`",
    ),
    (
        "registry-gone",
        r"manifest (?:for .* )?(?:unknown|not found)|manifest unknown|repository does not exist"
        r"|requested access to the resource is denied|not found: manifest",
        "the registry has this image no more: refresh the digest with `nox -s lock`, or build on "
        "`--base local`",
    ),
    (
        "registry-absent",
        r"(?:lookup|dial tcp|Client\.Timeout|TLS handshake|net/http).*"
        r"(?:no such host|refused|timeout|exceeded|unreachable|misbehaving|temporary failure|i/o|certificate)"
        r"|(?:connection refused|no such host).*registry",
        "no image registry can be reached from this host: check its network and proxy, or build on "
        "`--base local`, which needs Debian's packages only",
    ),
    (
        "package-key",
        r"NO_PUBKEY|EXPKEYSIG|is not signed|GPG error",
        "the key of a package repository was changed after this base was made: take a newer base "
        "(`nox -s lock`), or build on `--base local`",
    ),
    (
        "mount",
        r"bind source path does not exist|invalid mount config|mounts denied|is not shared from the host",
        "the container engine does not see this host's files: use an engine of this host, and share this "
        "folder with it where it runs in a virtual machine",
    ),
    (
        "image",
        r"no such image",
        "the image is not there any more: build it again with `nox -s images`",
    ),
    (
        "permission",
        r"permission denied.*docker(?:\.sock| daemon)",
        "no permission to use the container engine: join its group (`sudo usermod -aG docker $USER`, then "
        "log in again), or use Docker's rootless mode",
    ),
    (
        "out-of-memory",
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|OOM when allocating",
        "the GPU's memory is used up: end what else uses it (`nvidia-smi`), or measure less at once",
    ),
)  # fmt: skip
TABLE = tuple((kind, re.compile(pattern, re.IGNORECASE), message) for kind, pattern, message in _TABLE)


def advise(text: str) -> Advice | None:
    """Recognise a message; ``None`` where it is none of those that are known."""
    for kind, pattern, message in TABLE:
        if pattern.search(text):
            return Advice(kind, message)
    return None
