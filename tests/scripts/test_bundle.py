"""The archive holds what a report needs, and nothing that is planted on the host and in the run."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from scripts import bundle, doctor, environments
from scripts.bundle import write_bundle
from scripts.engine import Engine
from scripts.errors import Refusal
from scripts.finding import Finding
from tests.scripts.fake_engine import make_facts

PLANTED = [
    "pr0xyw0rd",
    "t0ken-0f-mine",
    "s1gned-part",
    "zebediah",
    "private-folder-of",
    "box17",
    "deadbeefdead",
]


class Images:
    """The SDK's client of an engine with one image that is ours."""

    def images(self, filters: dict[str, str]) -> list[dict[str, object]]:
        labels = {
            "rematch.stack": "torch-2.15",
            "rematch.input": "00ff",
            "org.example.secret": "deadbeefdead",
        }
        found = [{"Id": "sha256:1", "Size": 5, "RepoTags": ["rematch/torch-2.15:00ff"], "Labels": labels}]
        return found if filters["label"] == "rematch.stack" else []

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with secrets wherever they can be, and a folder of runs."""
    home = tmp_path / "private-folder-of-zebediah"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "zebediah")
    monkeypatch.setenv("http_proxy", "http://zebediah:pr0xyw0rd@proxy.example:3128")
    monkeypatch.setenv("HF_TOKEN", "t0ken-0f-mine")
    monkeypatch.setattr("socket.gethostname", lambda: "box17")
    engine = Engine(
        Images(),  # type: ignore[arg-type]
        make_facts(name="box17", root=f"{home}/docker"),
    )
    monkeypatch.setattr(bundle, "connect", lambda: engine)
    text = (
        f"at {home}/data: http://zebediah:pr0xyw0rd@proxy.example/x?signature=s1gned-part "
        "HF_TOKEN=t0ken-0f-mine on box17, by zebediah"
    )
    runs = tmp_path / "runs"
    (runs / "20261201T000000Z-box17-cpu" / "logs").mkdir(parents=True)
    run = runs / "20261201T000000Z-box17-cpu"
    record = {"id": run.name, "command": ["nox", "--data", f"{home}/data"], "machine": {"host": "box17"}}
    (run / "run.json").write_text(json.dumps(record))
    (run / "comparison.json").write_text(json.dumps({"groups": [{"rows": [{"cause": text}]}]}))
    (run / "logs" / "mlp.torch-eager.box17.0.log").write_text(f"{text}\nlast line\n")
    venvs = tmp_path / "venvs"
    (venvs / "images").mkdir(parents=True)
    (venvs / "images" / "torch-2.15.log").write_text(f"{text}\nStep 1/2 : FROM x\n")
    packages = venvs / "torch-2.15" / "lib" / "python3.11" / "site-packages"
    (packages / "torch-2.15.0.dist-info").mkdir(parents=True)
    (packages / "torch-2.15.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.15.0\n")
    monkeypatch.setattr(environments, "VENVS", venvs)
    return runs


def read(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_no_secret_is_in_the_archive(planted: Path, tmp_path: Path) -> None:
    said = f"results  {os.environ['HOME']}/x by zebediah on box17, t0ken-0f-mine"
    path = write_bundle(tmp_path / "b.zip", said, planted)
    for name, content in read(path).items():
        for secret in PLANTED:
            assert secret not in name
            assert secret not in content, (name, secret)
    assert not any(secret.encode() in path.read_bytes() for secret in PLANTED)


def test_what_a_report_needs_is_in_the_archive(planted: Path, tmp_path: Path) -> None:
    files = read(write_bundle(tmp_path / "b.zip", "ok  machine  fine", planted))
    assert files["doctor.txt"] == "ok  machine  fine\n"
    assert '[stacks."torch-2.15"]' in files["stacks.toml"]
    locks = json.loads(files["locks.json"])
    assert len(locks["tensorflow-2.21"]) == 2
    assert all(len(digest) == 64 for one in locks.values() for digest in one.values())
    assert json.loads(files["packages.json"]) == {"torch-2.15": {"python": "3.11", "torch": "2.15.0"}}
    engine = json.loads(files["engine.json"])
    assert (engine["version"], engine["cgroup_version"], "name" in engine) == ("28.3.0", "2", False)
    assert json.loads(files["images.json"]) == {
        "sha256:1": {
            "names": ["rematch/torch-2.15:00ff"],
            "size": 5,
            "labels": {"rematch.stack": "torch-2.15", "rematch.input": "00ff"},
        }
    }
    assert json.loads(files["run/run.json"])["command"] == ["nox", "--data", "~/data"]
    assert json.loads(files["run/comparison.json"])["groups"][0]["rows"]
    assert files["run/logs/mlp.torch-eager.[host].0.log"].endswith("\nlast line\n")
    assert "FROM x" in files["builds/images/torch-2.15.log"]


def test_the_latest_run_is_taken_and_a_folder_without_a_record_is_none(planted: Path, tmp_path: Path) -> None:
    (planted / "zzz").mkdir()
    newer = planted / "20200101T000000Z-a-cpu"
    newer.mkdir()
    (newer / "run.json").write_text('{"id": "newer"}')
    os.utime(newer / "run.json", (4e9, 4e9))
    files = read(write_bundle(tmp_path / "b.zip", "", planted))
    assert json.loads(files["run/run.json"]) == {"id": "newer"}
    assert "run/comparison.json" not in files


def test_a_host_without_runs_or_an_engine_has_an_archive_too(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> Engine:
        raise Refusal("no container engine: install Docker")

    monkeypatch.setattr(bundle, "connect", refuse)
    files = read(write_bundle(tmp_path / "b.zip", "", tmp_path / "none"))
    assert json.loads(files["engine.json"]) == {"refusal": "no container engine: install Docker"}
    assert not any(name.startswith("run/") for name in files)


def test_of_a_long_log_the_last_whole_lines_are_kept(planted: Path, tmp_path: Path) -> None:
    log = next(planted.glob("*/logs/*.log"))
    log.write_text("".join(f"line {number} é\n" for number in range(10_000)))
    files = read(write_bundle(tmp_path / "b.zip", "", planted))
    (content,) = [text for name, text in files.items() if name.startswith("run/logs/")]
    assert len(content) <= bundle.TAIL_CHARACTERS
    assert content.startswith("line ")
    assert content.endswith("line 9999 é\n")
    log.write_text("x" * 2 * bundle.TAIL_CHARACTERS)
    files = read(write_bundle(tmp_path / "c.zip", "", planted))
    assert [text for name, text in files.items() if name.startswith("run/logs/")] == [""]


def test_a_link_among_the_logs_leads_nowhere(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("not to be seen")
    (next(planted.glob("*/logs")) / "a.log").symlink_to(tmp_path / "elsewhere")
    files = read(write_bundle(tmp_path / "b.zip", "", planted))
    assert not any("not to be seen" in content for content in files.values())


def test_a_damaged_record_is_no_obstacle(planted: Path, tmp_path: Path) -> None:
    """R2"""
    record = next(planted.glob("*/run.json"))
    record.write_bytes(b'{"id": "\xff http://zebediah:pr0xyw0rd@h')
    files = read(write_bundle(tmp_path / "b.zip", "", planted))
    assert files["run/run.json"].startswith('{"id": "')
    assert "pr0xyw0rd" not in files["run/run.json"]


def test_an_archive_that_is_there_is_not_overwritten(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_text("mine")
    with pytest.raises(Refusal, match="there already"):
        write_bundle(tmp_path / "b.zip", "", planted)
    assert (tmp_path / "b.zip").read_text() == "mine"


def test_a_place_that_cannot_be_written_is_named(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match=r"file/b\.zip"):
        write_bundle(tmp_path / "file" / "b.zip", "", planted)


@pytest.mark.parametrize("arguments", [["--bundle"], ["--bundle", "named.zip"]])
def test_the_doctor_writes_it_and_says_where(
    arguments: list[str],
    planted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundle, "RUNS", planted)
    monkeypatch.setattr(doctor, "examine", lambda: iter([Finding("a", "fine")]))
    assert doctor.main(arguments) == 0
    (path,) = [*tmp_path.glob("*.zip"), *planted.glob("*.zip")]
    assert path.name in capsys.readouterr().out
    assert "bench-gpu can run here." in read(path)["doctor.txt"]
