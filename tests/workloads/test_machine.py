import os

from workloads import machine


def make(root, files):
    for name, content in files.items():
        path = os.path.join(str(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)
    return str(root)


def pretend_affinity(monkeypatch, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)), raising=False)


def test_affinity_limits_the_usable_cpus(monkeypatch, tmp_path):
    """T11"""
    pretend_affinity(monkeypatch, 3)
    assert machine.usable_cpus(make(tmp_path, {})) == 3


def test_a_control_group_limits_the_usable_cpus(monkeypatch, tmp_path):
    """T11: a container limited to two of 64 cores."""
    pretend_affinity(monkeypatch, 64)
    root = make(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "200000 100000\n"})
    assert machine.usable_cpus(root) == 2


def test_a_group_above_limits_too(monkeypatch, tmp_path):
    pretend_affinity(monkeypatch, 64)
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slice/job\n",
            "sys/fs/cgroup/slice/cpu.max": "400000 100000",
            "sys/fs/cgroup/slice/job/cpu.max": "max 100000",
        },
    )
    assert machine.usable_cpus(root) == 4


def test_the_older_control_groups_limit_too(monkeypatch, tmp_path):
    pretend_affinity(monkeypatch, 64)
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )
    assert machine.usable_cpus(root) == 3


def test_an_unlimited_older_group_does_not_limit(monkeypatch, tmp_path):
    pretend_affinity(monkeypatch, 8)
    root = make(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        },
    )
    assert machine.usable_cpus(root) == 8


def test_less_than_one_cpu_is_one(monkeypatch, tmp_path):
    pretend_affinity(monkeypatch, 8)
    root = make(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000"})
    assert machine.usable_cpus(root) == 1


def test_bfloat16_is_told_from_the_cpu_flags(tmp_path):
    assert machine.has_bfloat16(make(tmp_path / "a", {"proc/cpuinfo": "flags\t\t: fpu avx512_bf16 sse\n"}))
    assert machine.has_bfloat16(make(tmp_path / "b", {"proc/cpuinfo": "Features\t: asimd bf16\n"}))
    assert not machine.has_bfloat16(make(tmp_path / "c", {"proc/cpuinfo": "flags\t\t: fpu avx512f\n"}))


def test_the_driver_version_is_read_from_the_kernel_module(tmp_path):
    line = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
    assert machine.nvidia_driver(make(tmp_path, {"proc/driver/nvidia/version": line})) == "580.95.05"
    assert machine.nvidia_driver(str(tmp_path / "none")) is None


def test_this_machine_is_described():
    here = machine.describe()
    assert 1 <= here["cpus_usable"] <= here["cpus_online"]
    assert here["memory_bytes"] > 2**28
    assert here["cpu_model"]
