from pathlib import Path

import pytest

from scripts.errors import ExitStatus, Refusal
from scripts.options import Options, check_threads, parse_options
from scripts.runs import RUNS


def test_without_options_everything_is_left_to_the_profile_and_the_host() -> None:
    assert parse_options([]) == Options(results=RUNS)


def test_names_may_be_repeated_or_separated_by_commas() -> None:
    options = parse_options(
        ["--workload", "mlp,mnist", "--workload", "mlp", "--variant", "a", "--variant=b, c"]
    )
    assert options.workloads == ("mlp", "mnist")
    assert options.variants == ("a", "b", "c")


def test_all_options_of_a_bench_session_are_understood() -> None:
    words = (
        "--stack torch-2.15 --edition all --profile smoke --runner host --device cpu --precision fp32,bf16 "
        "--blocks 3 --budget 0.5 --threads 2 --seed 7 --baseline b --results /r --dry-run"
    )
    options = parse_options(words.split())
    assert options == Options(
        stacks=("torch-2.15",),
        editions=("article", "fair"),
        profile="smoke",
        runners=("host",),
        device="cpu",
        precisions=("fp32", "bf16"),
        blocks=3,
        budget_s=0.5,
        threads=2,
        seed=7,
        baseline="b",
        results=Path("/r"),
        dry_run=True,
    )


def test_several_runners_may_be_asked_for_and_only_the_last_word_counts() -> None:
    options = parse_options(["--runner", "docker", "--runner", "venv,docker", "--base", "local"])
    assert (options.runners, options.base) == (("venv", "docker"), "local")


def test_any_image_may_be_the_base_if_it_is_named_by_its_digest() -> None:
    image = f"registry.example:5000/team/python:3.11@sha256:{'a' * 64}"
    assert parse_options(["--runner", "docker", "--base", image]).base == image


def test_a_gpu_is_a_device_and_the_last_word_counts() -> None:
    assert parse_options(["--device", "cpu", "--gpu", "1"]).device == "cuda:1"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--blocks 0", "--blocks"),
        ("--blocks -1", "--blocks"),
        ("--blocks 1.5", "--blocks"),
        ("--blocks 1001", "--blocks"),
        ("--blocks many", "--blocks"),
        ("--budget 0", "--budget"),
        ("--budget -2", "--budget"),
        ("--budget nan", "--budget"),
        ("--budget inf", "--budget"),
        ("--budget 1e300", "--budget"),
        ("--budget 86401", "--budget"),
        ("--threads 0", "--threads"),
        ("--threads 4097", "--threads"),
        ("--seed -1", "--seed"),
        ("--seed 99999999999", "--seed"),
        ("--device tpu", "--device"),
        ("--device cuda", "--device"),
        ("--gpu all", "--gpu"),
        ("--gpu -1", "--gpu"),
        ("--results=", "--results"),
        ("--blocks", "--blocks"),
        ("--bloks 3", "--bloks"),
        ("--wo mlp", "--wo"),
        ("stray", "stray"),
        ("--workload mlp,", "name is empty"),
        ("--edition fare", "did you mean fair"),
        ("--profile quik", "did you mean quick"),
        ("--profile publised", "did you mean published"),
        ("--runner vnev", "did you mean venv"),
        ("--precision fp16", "fp32"),
        ("--runner docker --base debian", "--base"),
        ("--runner docker --base python:3.11@sha256:12", "--base"),
        ("--runner venv --base local", "only containers have a base"),
        ("--data digits,", "name is empty"),
    ],
)
def test_bad_options_are_refused_in_one_line_that_names_them(words: str, named: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_options(words.split())
    assert named in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.status == ExitStatus.BAD_OPTIONS


def test_a_resumed_run_keeps_its_own_plan() -> None:
    with pytest.raises(Refusal, match="--blocks beside --resume"):
        parse_options(["--resume", "r", "--blocks", "3"])


def test_the_defaults_of_a_session_stand_beside_resume() -> None:
    words = "--device cpu --runner venv --profile quick --resume r --results /r --dry-run"
    options = parse_options(words.split())
    assert options.resume == "r"


def test_threads_are_at_most_four_for_each_usable_cpu() -> None:
    check_threads(8, usable=2)
    with pytest.raises(Refusal, match="may use 2 CPUs; give 8 or fewer"):
        check_threads(9, usable=2)
