import os
import time
from pathlib import Path

from scripts.epochs import count_epochs, keep_epochs


def test_epochs_are_kept_while_a_launch_runs_and_at_its_end(tmp_path: Path) -> None:
    written, kept = tmp_path / "epochs.jsonl", tmp_path / "kept.jsonl"
    assert count_epochs(kept) == 0
    with keep_epochs(written, kept, look_s=0.01):
        written.write_text('{"epoch": 1}\n{"epo')
        end = time.monotonic() + 20
        while count_epochs(kept) < 1 and time.monotonic() < end:
            time.sleep(0.01)
        # Half a line is no epoch.
        assert kept.read_text() == '{"epoch": 1}\n'
        written.write_text('{"epoch": 1}\n{"epoch": 2}\n')
    assert count_epochs(kept) == 2


def test_a_launch_without_epochs_leaves_nothing_not_even_those_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "kept.jsonl").write_text('{"epoch": 1}\n')
    with keep_epochs(tmp_path / "epochs.jsonl", tmp_path / "kept.jsonl"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_neither_a_link_nor_a_pipe_of_a_launch_is_followed(tmp_path: Path) -> None:
    secret, written, kept = tmp_path / "secret", tmp_path / "epochs.jsonl", tmp_path / "kept.jsonl"
    secret.write_text("of the host\n")
    written.symlink_to(secret)
    with keep_epochs(written, kept):
        pass
    written.unlink()
    os.mkfifo(written)
    with keep_epochs(written, kept):
        pass
    assert count_epochs(kept) == 0
    assert "host" not in (kept.read_text() if kept.exists() else "")
