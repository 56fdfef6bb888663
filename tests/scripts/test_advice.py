"""Messages of engines, drivers, frameworks and registries are known by their texts, each with its remedy."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.advice import TABLE, advise

RECORDED = [
    tuple(line.split("\t", 1))
    for line in (Path(__file__).parent / "fixtures" / "messages.tsv").read_text().splitlines()
]
"""Kind and text of what was really said."""
BENIGN = [
    "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no "
    "CUDA-capable device is detected",
    "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 9.0. CUDA kernels "
    "will be jit-compiled from PTX, which could take 30 minutes or longer.",
    "ValueError: 35 samples, error 350",
    "MemoryError",
    "Traceback (most recent call last):",
    "",
]
REMEDY = re.compile(
    r"`[^`]+`|\b(?:install|restart|enable|end it|choose|free|wait|check|use|fewer|put|take|build|compare)\b"
)


@pytest.mark.parametrize(("kind", "text"), RECORDED)
def test_a_recorded_message_is_known(kind: str, text: str) -> None:
    """C1, C3, C4, C7, C9, C10"""
    found = advise(text)
    assert found is not None
    assert found.kind == kind


def test_every_kind_has_a_recorded_message() -> None:
    assert {kind for kind, _ in RECORDED} == {kind for kind, _, _ in TABLE}


@pytest.mark.parametrize("text", BENIGN)
def test_what_is_no_fault_gets_no_advice(text: str) -> None:
    assert advise(text) is None


@pytest.mark.parametrize(("kind", "message"), [(kind, message) for kind, _, message in TABLE])
def test_a_message_is_one_line_that_says_what_is_wrong_and_names_the_remedy(kind: str, message: str) -> None:
    wrong, colon, remedy = message.partition(": ")
    assert wrong
    assert colon
    assert REMEDY.search(remedy), kind
    assert "\n" not in message


def test_toolkit_cdi_and_driver_are_three_different_pieces_of_advice() -> None:
    """C1"""
    messages = {kind: message for kind, _, message in TABLE if kind in ("toolkit", "cdi", "driver")}
    assert len(set(messages.values())) == 3
    assert "nvidia-ctk runtime configure" in messages["toolkit"]
    assert "nvidia-ctk cdi generate" in messages["cdi"]
    assert "install the driver" in messages["driver"]


def test_a_registry_that_deleted_limits_or_is_absent_is_told_apart() -> None:
    """C7"""
    messages = {kind: message for kind, _, message in TABLE if kind.startswith(("registry", "package"))}
    assert "nox -s lock" in messages["registry-gone"]
    assert "docker login" in messages["registry-limit"]
    assert "proxy" in messages["registry-absent"]
    assert "newer base" in messages["package-key"]
    assert all("--base local" in message for message in messages.values())


@given(st.sampled_from(RECORDED), st.text(max_size=40), st.text(max_size=40), st.booleans())
def test_a_message_is_known_wherever_it_stands_and_however_it_is_spelt(
    recorded: tuple[str, str], before: str, after: str, is_loud: bool
) -> None:
    kind, text = recorded
    found = advise(f"{before}\n{text.upper() if is_loud else text}\n{after}")
    assert found is not None
    assert found.kind == kind


@given(st.text())
def test_any_text_at_all_can_be_asked_about(text: str) -> None:
    found = advise(text)
    assert found is None or found.message in {message for _, _, message in TABLE}
