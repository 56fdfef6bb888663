import os
import subprocess
import sys
import time

from workloads import process_tree

BURN = "import time; end = time.process_time() + %s\nwhile time.process_time() < end: pass\n"


def test_the_cpu_time_of_a_child_that_ended_counts():
    before = process_tree.cpu_s()
    subprocess.check_call([sys.executable, "-S", "-c", BURN % 0.2])
    assert process_tree.cpu_s() - before >= 0.2


def test_the_cpu_time_of_living_descendants_counts_theirs_that_ended_too():
    """T14: workers that outlive an epoch are waited for by nobody."""
    nested = "import subprocess, sys\nsubprocess.check_call([sys.executable, '-S', '-c', %r])\n" % (
        BURN % 0.2
    )
    before = process_tree.cpu_s()
    child = subprocess.Popen(
        [sys.executable, "-S", "-c", nested + "print('done', flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout.readline() == b"done\n"
        assert process_tree.cpu_s() - before >= 0.18
    finally:
        child.communicate(b"\n")


def test_memory_counts_a_childs_own_pages_and_shared_ones_once():
    before = process_tree.memory_bytes()
    read, write = os.pipe()
    shared = b"x" * (64 << 20)
    pid = os.fork()
    if not pid:
        own = b"y" * (48 << 20)
        os.write(write, b"." if own and shared else b"")
        time.sleep(60)
        os._exit(0)
    try:
        assert os.read(read, 1) == b"."
        grown = process_tree.memory_bytes() - before
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(read)
        os.close(write)
    # 64 MiB in both, told once, and 48 MiB of the child's; twice the former would be 176.
    assert 100 << 20 < grown < 140 << 20


def test_a_process_that_ends_while_it_is_looked_at_is_no_error(monkeypatch):
    real = os.listdir

    def with_a_ghost(path):
        return real(path) + (["4194305"] if path == "/proc" else [])

    monkeypatch.setattr(os, "listdir", with_a_ghost)
    assert process_tree.cpu_s() > 0


def test_a_kernel_that_tells_no_share_is_told_as_nothing(monkeypatch):
    monkeypatch.setattr(process_tree, "_read_share", lambda pid: None)
    assert process_tree.memory_bytes() is None
