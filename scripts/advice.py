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
        r"|could not select device driver \"cdi\""
        # Docker's device request under a toolkit that was set to CDI only.
        r"|invoking the NVIDIA Container Runtime Hook directly",
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
        "driver-mismatch",
        r"driver/library version mismatch|\berror 803\b|unsupported display driver / cuda driver combination",
        "the NVIDIA driver was updated while the old one is still loaded: restart this machine",
    ),
    (
        "driver",
        r"unsatisfied condition: cuda ?>=|CUDA driver version is insufficient|cudaErrorInsufficientDriver"
        r"|forward compatibility was attempted on non supported|\berror 35\b|\berror 804\b"
        r"|driver (?:on your system )?is too old|unsupported toolchain|UNSUPPORTED_PTX_VERSION",
        "the NVIDIA driver is too old for this stack's CUDA: install the driver that docker/stacks.toml "
        "names for it, or a newer one",
    ),
    (
        "gpu-busy",
        r"device\(s\) is/are busy or unavailable|cudaErrorDevicesUnavailable",
        "another process keeps the GPU for itself: end it (`nvidia-smi` names it), or choose another --gpu",
    ),
    (
        "fabric",
        r"\berror 802\b|system not yet initialized",
        "the fabric between this host's GPUs is not up: `sudo systemctl start nvidia-fabricmanager`",
    ),
    (
        "gpu-lost",
        r"GPU is lost|fallen off the bus|Unable to determine the device handle"
        # Also what a container says whose devices were taken away by a reload of systemd.
        r"|Failed to initialize NVML: Unknown|NVML.*Unknown Error|CUDA.*device (?:is )?(?:unavailable|lost)"
        r"|unrecoverable GPU error|\bXid\b|CUDA error: unspecified launch failure|cudaErrorLaunchFailure"
        r"|CUDA_ERROR_LAUNCH_FAILED|uncorrectable ECC error",
        "the GPU disappeared, or failed: see `nvidia-smi` and the kernel's log (`sudo dmesg | grep -i xid`), "
        "restart this machine if need be, then go on with --resume",
    ),
    (
        "rootless-gpu",
        r"nvidia-container-cli:.*(?:cgroup|BPF_CGROUP_DEVICE|device rules|insufficient permissions)",
        "a rootless engine may not set the rules for GPUs: put `no-cgroups = true` under "
        "[nvidia-container-cli] in /etc/nvidia-container-runtime/config.toml, or use CDI",
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
        r"toomanyrequests|pull rate limit|registry.*429 Too Many",
        "the registry's rate limit is reached: wait, log in (`docker login`), or build on `--base local`",
    ),
    (
        "registry-gone",
        r"manifest (?:for .* )?(?:unknown|not found)|repository does not exist"
        r"|failed to resolve (?:reference|source metadata).*not found"
        r"|requested access to the resource is denied",
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
        r"NO_PUBKEY|EXPKEYSIG|is not signed\b|GPG error",
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
        "limits",
        r"(?:pids|memory|cpuset|swap) limit.*(?:not (?:be )?support|discarded|not mounted|cgroup)"
        r"|cgroup controller .{0,3}(?:pids|memory|cpuset).{0,3} is not available"
        r"|cannot set (?:pids|memory) limit",
        "the container engine cannot limit what a launch uses: mount the control groups, or give a rootless "
        "engine control group version 2 with its controllers delegated by systemd (`Delegate=yes`)",
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
