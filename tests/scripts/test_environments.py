"""Environments are made from their lock alone, whole or not at all."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from scripts import environments, uv
from scripts.environments import EnvironmentRefusal, is_current, prepare
from scripts.errors import ExitStatus

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SIX_1_17 = "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"
SIX_1_16 = "six==1.16.0 --hash=sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254\n"
INICONFIG = (
    "iniconfig==2.1.0 --hash=sha256:9deba5723312380e77435581c6bf4935c94cbfab9b1ed33ef8d238ea168eb760\n"
)
NOWHERE = "http://127.0.0.1:9"


TOOL = Path(environments.find_uv()[0])
"""Of this host, or brought in: once, and not by each test."""


@pytest.fixture(autouse=True)
def venvs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "VENVS", tmp_path / "venvs")
    monkeypatch.setenv("PATH", str(TOOL.parent), prepend=os.pathsep)
    return tmp_path / "venvs"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.lock"
    path.write_text(SIX_1_17)
    return path


def ask(python: Path, question: str) -> str:
    return subprocess.run([python, "-c", question], capture_output=True, text=True, check=True).stdout.strip()


def refuse(name: str, python: str, locks: list[Path]) -> EnvironmentRefusal:
    with pytest.raises(EnvironmentRefusal) as caught:
        prepare(name, python, locks)
    assert "\n" not in caught.value.message
    return caught.value


def start(venvs: Path, action: str) -> "subprocess.Popen[str]":
    """Start another process that does something with these environments and says when."""
    code = "from pathlib import Path\nfrom scripts import environments\n"
    code += f"environments.VENVS = Path({str(venvs)!r})\n"
    return subprocess.Popen(
        [sys.executable, "-c", code + action],
        cwd=environments.ROOT,
        stdin=subprocess.PIPE,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_holds_what_the_locks_say_under_the_python_asked_for(lock: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.lock"
    second.write_text(INICONFIG)
    python = prepare("tiny", PYTHON, [lock, second])
    assert ask(
        python, "import six, iniconfig, sys; print(six.__version__, '%d.%d' % sys.version_info[:2])"
    ) == (f"1.17.0 {PYTHON}")


def test_ignores_the_users_configuration_of_pip_and_uv(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constraint = tmp_path / "constraint.txt"
    constraint.write_text("six==1.16.0\n")
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {NOWHERE}\nconstraint = {constraint}\n")
    for folder, content in (
        ("uv", f'index-url = "{NOWHERE}"\n'),
        ("pip", f"[global]\nindex-url = {NOWHERE}\n"),
    ):
        (tmp_path / "config" / folder).mkdir(parents=True)
        (tmp_path / "config" / folder / f"{folder}.{'toml' if folder == 'uv' else 'conf'}").write_text(
            content
        )
    hostile = {
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        "PIP_INDEX_URL": NOWHERE,
        "PIP_CONSTRAINT": str(constraint),
        "UV_CONFIG_FILE": str(tmp_path / "config" / "uv" / "uv.toml"),
        "UV_INDEX_URL": NOWHERE,
        "UV_DEFAULT_INDEX": NOWHERE,
        "UV_CONSTRAINT": str(constraint),
        "UV_OVERRIDE": str(constraint),
        "UV_EXCLUDE_NEWER": "2001-01-01",
        "UV_NO_BINARY": "1",
        "UV_PYTHON": "2.7",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PYTHONPATH": str(tmp_path),
        "VIRTUAL_ENV": str(tmp_path),
    }
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    python = prepare("tiny", PYTHON, [lock])
    monkeypatch.delenv("PYTHONPATH")
    assert ask(python, "import six; print(six.__version__)") == "1.17.0"


def test_is_reused_while_its_lock_stays_and_rebuilt_when_it_changes(lock: Path, venvs: Path) -> None:
    prepare("tiny", PYTHON, [lock])
    (venvs / "tiny" / "kept").touch()
    prepare("tiny", PYTHON, [lock])
    assert (venvs / "tiny" / "kept").exists()
    lock.write_text(SIX_1_16)
    assert not is_current("tiny", PYTHON, [lock])
    assert ask(prepare("tiny", PYTHON, [lock]), "import six; print(six.__version__)") == "1.16.0"
    assert not (venvs / "tiny" / "kept").exists()


def test_is_stale_when_another_python_is_asked_for_or_its_own_is_gone(lock: Path, venvs: Path) -> None:
    prepare("tiny", PYTHON, [lock])
    assert is_current("tiny", PYTHON, [lock])
    assert not is_current("tiny", "3.99", [lock])
    (venvs / "tiny" / "bin" / "python").unlink()
    (venvs / "tiny" / "bin" / "python").symlink_to(venvs / "removed")
    assert not is_current("tiny", PYTHON, [lock])


def test_half_built_is_never_reused(lock: Path, venvs: Path) -> None:
    python = prepare("tiny", PYTHON, [lock])
    (venvs / "tiny" / "stamp").unlink()
    next((venvs / "tiny").rglob("six.py")).unlink()
    assert prepare("tiny", PYTHON, [lock]) == python
    assert ask(python, "import six; print(six.__version__)") == "1.17.0"


def test_wrong_hash_is_refused_with_lock_package_and_remedy(lock: Path) -> None:
    lock.write_text(SIX_1_17.replace("4721f391", "00000000"))
    refusal = refuse("tiny", PYTHON, [lock])
    assert (refusal.kind, refusal.status) == ("lock", ExitStatus.BAD_OPTIONS)
    assert "requirements.lock" in refusal.message
    assert "hash of six" in refusal.message
    assert "nox -s lock" in refusal.message
    assert not is_current("tiny", PYTHON, [lock])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("six==1.17.0\n", "--require-hashes"),
        (SIX_1_17.replace("1.17.0", "99.0.0"), "six"),
        ("six ==== 1\n", "requirements.lock"),
    ],
)
def test_lock_that_cannot_be_followed_is_named(lock: Path, content: str, said: str) -> None:
    lock.write_text(content)
    refusal = refuse("tiny", PYTHON, [lock])
    assert refusal.kind == "lock"
    assert "requirements.lock" in refusal.message
    assert said in refusal.message


def test_packages_that_do_not_fit_together_are_a_lock_to_refresh(lock: Path) -> None:
    """N4: a conflict is found when the environment is made, not in mid-run."""
    lock.write_text(
        "packaging==24.2 --hash=sha256:09abb1bccd265c01f4a3aa3f7a7db064b36514d2cba19a2f694fe6150451a759\n"
        "pytest==8.3.4 --hash=sha256:50e16d954148559c9a74109af1eaf0c945ba2d8f30f0a3d3335edde19788b6f6\n"
    )
    refusal = refuse("tiny", PYTHON, [lock])
    assert refusal.kind == "lock"
    assert "do not fit together" in refusal.message


def test_missing_lock_is_named(tmp_path: Path) -> None:
    refusal = refuse("tiny", PYTHON, [tmp_path / "absent.lock"])
    assert refusal.kind == "lock"
    assert "absent.lock" in refusal.message


def test_missing_python_is_refused_by_stack_and_version(lock: Path) -> None:
    refusal = refuse("stack-of-old", "3.5", [lock])
    assert (refusal.kind, refusal.status) == ("python", ExitStatus.HOST_CANNOT)
    assert refusal.message.startswith("stack-of-old: needs Python 3.5")
    assert "install it" in refusal.message


def test_unreachable_index_is_one_line_and_uvs_words_are_in_the_log(
    lock: Path, venvs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(venvs / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv(uv.INDEX, NOWHERE)
    refusal = refuse("tiny", PYTHON, [lock])
    assert (refusal.kind, refusal.status) == ("install", ExitStatus.HOST_CANNOT)
    assert "could not be fetched" in refusal.message
    assert str(venvs / "tiny.log") in refusal.message
    assert NOWHERE in (venvs / "tiny.log").read_text()


def test_network_that_the_user_turned_off_is_said(
    lock: Path, venvs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(venvs / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    refusal = refuse("tiny", PYTHON, [lock])
    assert refusal.kind == "install"
    assert "UV_OFFLINE" in refusal.message


def test_folder_that_cannot_be_made_is_named(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(environments, "VENVS", tmp_path / "file" / "venvs")
    refusal = refuse("tiny", PYTHON, [lock])
    assert refusal.kind == "disk"
    assert str(tmp_path / "file") in refusal.message


def test_two_at_once_build_it_once(lock: Path, venvs: Path) -> None:
    action = f"print(environments.prepare('tiny', {PYTHON!r}, [Path({str(lock)!r})]))"
    both = [start(venvs, action) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(text.count("building") for text in said) == 1


def test_environment_in_use_is_not_rebuilt_under_its_user(lock: Path, venvs: Path) -> None:
    use = f"environments.prepare('tiny', {PYTHON!r}, [Path({str(lock)!r})])\n"
    use += "print('in use', flush=True); input()"
    user = start(venvs, use)
    assert user.stdin is not None
    assert user.stdout is not None
    while "in use" not in user.stdout.readline():
        assert user.poll() is None
    lock.write_text(SIX_1_16)
    rebuilding = threading.Thread(target=prepare, args=("tiny", PYTHON, [lock]))
    rebuilding.start()
    rebuilding.join(timeout=1)
    assert rebuilding.is_alive()
    user.communicate("\n", timeout=60)
    rebuilding.join(timeout=120)
    assert is_current("tiny", PYTHON, [lock])


def test_killed_process_leaves_no_lock(lock: Path, venvs: Path) -> None:
    """D3: whoever died half-way before is not waited for."""
    holder = start(
        venvs,
        "import fcntl; environments._flock('tiny', fcntl.LOCK_EX); print('held', flush=True); input()",
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert prepare("tiny", PYTHON, [lock]).exists()


PROMISE = (
    "promise==2.3 --hash=sha256:dfd18337c523ba4b6a58801c164c1904a9d4d1b1747c7d5dbf45b693a49d93d0\n" + SIX_1_17
)


def test_a_source_package_is_built_where_it_is_named_and_nowhere_else(lock: Path) -> None:
    lock.write_text(PROMISE)
    assert "promise" in refuse("tiny", PYTHON, [lock]).message
    python = prepare("tiny", PYTHON, [lock], ["promise"])
    assert ask(python, "import promise; print(promise.__name__)") == "promise"
    assert is_current("tiny", PYTHON, [lock], ["promise"])
    assert not is_current("tiny", PYTHON, [lock])


def test_what_a_source_package_is_built_by_is_pinned_by_hash(
    lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock.write_text(PROMISE)
    other = tmp_path / "build.lock"
    pins = environments.BUILD_LOCK.read_text()
    other.write_text(re.sub(r"(?<=sha256:)[0-9a-f]{64}", "0" * 64, pins))
    monkeypatch.setattr(environments, "BUILD_LOCK", other)
    # What an earlier build left there would be taken.
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(EnvironmentRefusal) as refused:
        prepare("tiny", PYTHON, [lock], ["promise"])
    assert refused.value.kind == "lock"
    assert "setuptools" in refused.value.message
