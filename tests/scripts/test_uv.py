"""uv is found or brought in, and what it says becomes one line."""

import subprocess
from pathlib import Path

import pytest

from scripts import environments, uv


def plant(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("script", ["echo uv 0.1.0", "exit 127", "echo nonsense"])
def test_uv_that_is_old_or_broken_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    plant(tmp_path / "path", "uv", script)
    private = plant(tmp_path / "private" / "bin", "uv", "echo 'uv 99.0.0 (abc)'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert uv.find(tmp_path / "private") == [str(private)]


def test_uv_on_the_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = plant(tmp_path / "path", "uv", "echo 'uv 99.0.0 (abc)'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    assert uv.find(tmp_path / "private") == [str(found)]


def test_uv_is_brought_in_whatever_pips_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    with (tmp_path / "log").open("w") as log:
        command = uv.bring(tmp_path / "private", environments.UV_LOCK, log)
    assert uv.version(command) >= uv.MINIMUM


def test_uv_that_cannot_be_brought_in_is_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with (tmp_path / "log").open("w") as log, pytest.raises(uv.EnvironmentRefusal, match="install uv"):
        uv.bring(tmp_path / "private", environments.UV_LOCK, log)


def test_variables_that_cannot_change_the_content_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_CACHE_DIR", "UV_CONCURRENT_DOWNLOADS", "PIP_CERT", "HTTPS_PROXY", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, "/kept")
        assert uv.variables()[name] == "/kept"
    for name in ("UV_INDEX", "UV_FIND_LINKS", "PIP_FIND_LINKS", "PIP_PRE", "PYTHONPATH", "UV_INSECURE_HOST"):
        monkeypatch.setenv(name, "/dropped")
        assert name not in uv.variables()


def test_mirror_serves_both_installers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(uv.INDEX, "http://mirror/simple")
    assert uv.variables()["UV_DEFAULT_INDEX"] == uv.variables()["PIP_INDEX_URL"] == "http://mirror/simple"


def test_python_that_only_pyenv_has_is_found_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = plant(tmp_path / "path", "uv", "exit 2")
    for version in ("3.6.9", "3.6.15", "3.6-dev", "3.60.1"):
        plant(tmp_path / "pyenv" / "versions" / version / "bin", "python", "true")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    found = uv.find_python([str(blind)], "3.6")
    assert found == tmp_path / "pyenv" / "versions" / "3.6.15" / "bin" / "python"
    assert uv.find_python([str(blind)], "3.5") is None


def test_python_that_uv_finds_is_of_the_version_asked_for() -> None:
    python = uv.find_python(environments.find_uv(), "3.11")
    assert python is not None
    said = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("Python 3.11.")


@pytest.mark.parametrize(
    ("output", "kind", "said"),
    [
        ("error: Failed to extract\n  cause: No space left on device (os error 28)", "disk", "free some"),
        (
            "error: Failed\n  cause: Failed to fetch: `x`\n  cause: Connection refused (os error 111)",
            "install",
            "refused",
        ),
        ("error: a\n  cause: HTTP status client error (403 Forbidden) for url (x)", "install", "403"),
        (
            "error: No solution\n  cause: a is unsatisfiable.\n\nhint: the network was disabled.",
            "install",
            "UV_OFFLINE",
        ),
        ("error: No solution\n  cause: no version of six==9, unsatisfiable.", "lock", "six==9"),
        ("", "install", "without a reason"),
    ],
)
def test_failure_is_told_apart(output: str, kind: str, said: str, tmp_path: Path) -> None:
    """C10: the disk is named as the cause where it is the cause."""
    found, reason = uv.explain(output, [tmp_path / "a.lock"])
    assert found == kind
    assert said in reason


def test_hash_mismatch_names_the_lock_that_holds_the_package(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text("numpy==1.0 \\\n")
    (tmp_path / "b.lock").write_text("six==1.17.0 \\\n")
    kind, reason = uv.explain(
        "cause: Hash mismatch for `six==1.17.0`", [tmp_path / "a.lock", tmp_path / "b.lock"]
    )
    assert kind == "lock"
    assert "b.lock" in reason
    assert "a.lock" not in reason
