"""What the user may say after ``--``: parsed, and refused in one line where it makes no sense."""

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast, get_args

from scripts.arguments import Parser
from scripts.catalogue import find_names
from scripts.contract import Edition, Precision, Runner
from scripts.errors import Refusal
from scripts.image_inputs import BASES, is_base
from scripts.profiles import DEFAULT, PROFILES
from scripts.published import Article, load_articles
from scripts.runs import RUNS

MAX_BLOCKS = 1000
MAX_BUDGET_S = 86400.0
MAX_THREADS = 4096
MAX_SEED = 2**32 - 1
OVERSUBSCRIPTION = 4
"""Threads a usable CPU, at most."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Options:
    """``None`` and empty tuples mean: as the profile, the workloads and this host have it."""

    workloads: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    editions: tuple[Edition, ...] = ()
    profile: str | None = None
    runners: tuple[Runner, ...] = ()
    device: str | None = None
    precisions: tuple[Precision, ...] = ()
    blocks: int | None = None
    budget_s: float | None = None
    threads: int | None = None
    seed: int | None = None
    baseline: str | None = None
    articles: Mapping[str, Article] = field(default_factory=dict)
    """To replay, by key: their workloads only, in their edition and on their stacks too."""
    base: str | None = None
    """As ``scripts.images`` takes it."""
    data: tuple[str, ...] = ()
    """Data sets, by name or path."""
    results: Path = RUNS
    resume: str | None = None
    dry_run: bool = False


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the options of a bench session.

    Raises:
        Refusal: an option is unknown, absurd, or not available in this version.
    """
    said = _make_parser().parse_args(list(arguments))
    _refuse_unavailable(said)
    if said.resume is not None:
        _refuse_beside_resume(said)
    editions = find_names("edition", _split(said.edition), [*get_args(Edition), "all"])
    precisions = find_names("precision", _split(said.precision), get_args(Precision))
    find_names("profile", [said.profile] if said.profile else [], PROFILES)
    runners = find_names("runner", _split(said.runner and [said.runner]), get_args(Runner))
    return Options(
        workloads=_split(said.workload),
        variants=_split(said.variant),
        stacks=_split(said.stack),
        editions=get_args(Edition) if "all" in editions else cast(tuple[Edition, ...], tuple(editions)),
        profile=said.profile,
        runners=cast(tuple[Runner, ...], tuple(runners)),
        device=said.device,
        precisions=cast(tuple[Precision, ...], tuple(precisions)),
        blocks=said.blocks,
        budget_s=said.budget,
        threads=said.threads,
        seed=said.seed,
        baseline=said.baseline,
        articles=load_articles() if said.articles else {},
        base=said.base,
        data=_split(said.data),
        results=said.results or RUNS,
        resume=said.resume,
        dry_run=bool(said.dry_run),
    )


def check_threads(threads: int, usable: int) -> None:
    """Refuse more threads than can be meant on ``usable`` CPUs."""
    if threads > OVERSUBSCRIPTION * usable:
        raise Refusal(
            f"--threads {threads}: this process may use {usable} CPUs; "
            f"give {OVERSUBSCRIPTION * usable} or fewer"
        )


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="nox -s SESSION --", description="Measure, prove and compare.", allow_abbrev=False)

    def several(name: str, says: str) -> None:
        parser.add_argument(name, action="append", metavar="NAME[,NAME]", help=says)

    several("--workload", "what is computed (default: all)")
    several("--variant", "ways to compute it (default: as the profile has it)")
    several(
        "--stack",
        "pinned environments, or all for every version that there is (default: the current ones)",
    )
    several("--edition", "article, fair or all (default: as the profile has it)")
    several("--precision", "fp32, tf32, bf16 (default: fp32)")
    parser.add_argument("--profile", help=f"{', '.join(PROFILES)} (default: {DEFAULT})")
    parser.add_argument(
        "--runner",
        metavar="NAME[,NAME]",
        help="docker, venv, or host for the interpreter at hand; several measure both in each block "
        "(default: the session's)",
    )
    parser.add_argument("--device", type=_device, help="cpu or cuda:N (default: cpu)")
    parser.add_argument("--gpu", type=_gpu, dest="device", metavar="N", help="short for --device cuda:N")
    parser.add_argument(
        "--blocks", type=_number(int, 1, MAX_BLOCKS), metavar="N", help="launches of each cell"
    )
    parser.add_argument(
        "--budget",
        type=_number(float, 1e-3, MAX_BUDGET_S),
        metavar="SECONDS",
        help="sampling in each launch (default: the profile's bound, divided)",
    )
    parser.add_argument(
        "--threads", type=_number(int, 1, MAX_THREADS), metavar="N", help="default: the usable CPUs"
    )
    parser.add_argument(
        "--seed", type=_number(int, 0, MAX_SEED), metavar="N", help="draws the order of launches"
    )
    several(
        "--data",
        "data sets: digits or mnist, shapes or cifar-10, a definition's FILE.toml, or a FOLDER with "
        "MNIST/raw or cifar-10-python.tar.gz (default: each workload's first, which needs no network)",
    )
    parser.add_argument(
        "--base",
        type=_base,
        metavar="BASE",
        help="of the images: pinned, alternative, local or IMAGE@sha256:DIGEST (default: pinned, or local "
        "where only such an image is there)",
    )
    parser.add_argument(
        "--articles",
        action="store_true",
        default=None,
        help="what the articles measured, in their edition, on their own versions beside the current ones; "
        "ends with what became of their claims",
    )
    parser.add_argument("--baseline", metavar="VARIANT", help="what the others are compared with")
    parser.add_argument("--results", type=_folder, metavar="DIR", help="where the run's folder goes")
    parser.add_argument(
        "--resume", metavar="RUN", help="measure what is missing of this run, as it was planned"
    )
    parser.add_argument(
        "--dry-run", action="store_true", default=None, help="show the plan and its estimate; start nothing"
    )
    return parser


def _split(values: list[str] | None) -> tuple[str, ...]:
    names = [name.strip() for value in values or [] for name in value.split(",")]
    if not all(names):
        raise Refusal(f"{','.join(values or [])!r}: a name is empty")
    return tuple(dict.fromkeys(names))


def _number(kind: type[Number], least: Number, most: Number) -> Callable[[str], Number]:
    def convert(text: str) -> Number:
        try:
            value = kind(text)
        except ValueError as error:
            words = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"{text!r} is no {words}") from error
        if not math.isfinite(value) or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least:g} and {most:g}")
        return value

    return convert


def _device(text: str) -> str:
    if text != "cpu" and not re.fullmatch(r"cuda:[0-9]{1,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither cpu nor cuda:N")
    return text


def _gpu(text: str) -> str:
    return _device(f"cuda:{text}")


def _base(text: str) -> str:
    if not is_base(text):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BASES)} and no IMAGE@sha256:DIGEST")
    return text


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("the folder's name is empty")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from error


def _refuse_unavailable(said: argparse.Namespace) -> None:
    if said.base is not None and "docker" not in (said.runner or "").split(","):
        raise Refusal("--base: only containers have a base; use --runner docker, or leave it out")


def _refuse_beside_resume(said: argparse.Namespace) -> None:
    # Device, runner and profile are the session's defaults more often than the user's words.
    apart = ("resume", "results", "dry_run", "device", "runner", "profile", "articles")
    if extra := [name for name, value in vars(said).items() if value is not None and name not in apart]:
        raise Refusal(f"--{extra[0]} beside --resume: a resumed run keeps its own plan; leave it out")
