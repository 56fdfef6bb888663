"""Prepares data sets and verifies them: ``nox -s data -- [NAME | FILE.toml | FOLDER ...] [--check]``.

NAME is a data set of this project's (default: digits and shapes), FILE.toml the definition of another in the
form of scripts/datasets.toml, FOLDER one that holds torchvision's MNIST/raw, or CIFAR-10's
cifar-10-python.tar.gz.

Exit status: 0 all are there; 1 --check found one missing or damaged; 2 bad options, definition or files; 3 it
cannot be had or written here, with what to do.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scripts.arguments import Parser
from scripts.catalogue import find_names
from scripts.contract import Data
from scripts.datasets import DataSet, load_datasets
from scripts.download import fetch
from scripts.errors import ExitStatus, Refusal, run_program
from scripts.formats import FORMATS, recognise
from scripts.prepared import (
    Manifest,
    find_root,
    hold,
    identify,
    name_place,
    read_manifest,
    replace_folder,
    verify,
    write_manifest,
)

Say = Callable[[str], None]
OWN = "own-"
"""Begins the name of a data set that came from a folder of the user's."""
DEFAULTS = ("digits", "shapes")


def is_path(asked: str) -> bool:
    """Tell whether a data set is asked for by a file or a folder, not by its name."""
    return (
        "/" in asked
        or asked.endswith(".toml")
        or (asked not in ("", *load_datasets()) and Path(asked).is_dir())
    )


def is_kept(asked: str) -> bool:
    """Tell whether a data set is asked for by the name that it was given here, such as one of a folder's."""
    return (
        asked not in load_datasets() and not is_path(asked) and read_manifest(find_root() / asked) is not None
    )


def prepare(asked: str, say: Say) -> Data:
    """Return a data set, made or downloaded where it is not there or not whole.

    Args:
        asked: name, definition or folder.

    Raises:
        Refusal: there is no such set, or it cannot be had.
    """
    name, data, source = find(asked)
    folder = find_root() / name
    with hold(folder):
        found = check(folder, data)
        if isinstance(found, str):
            if folder.exists():
                say(f"{name}: {found}; it is made again")
            with replace_folder(folder) as fresh:
                raw = fresh / data.form.raw
                raw.mkdir(parents=True)
                _make(raw, name, data, source, say)
                fault = data.form.find_fault(fresh, data.images)
                if fault is not None:
                    raise Refusal(f"{source or name}: {fault}; mend the files or the definition")
                found = write_manifest(fresh, name, data.nature, _tell_origin(data), data.format)
                if data.sha256 not in (None, found.sha256):
                    raise Refusal(
                        f"{name}: {_tell_maker(data, source)} other bytes ({found.sha256[:12]}) than are "
                        f"wanted ({str(data.sha256)[:12]}); please report it",
                        ExitStatus.HOST_CANNOT,
                    )
    return Data(name=name, sha256=found.sha256, folder=name_place(folder), nature=data.nature)


def find(asked: str) -> tuple[str, DataSet, Path | None]:
    """Find what is asked for.

    Returns:
        its name, its definition, and the user's folder that it comes from, if any.

    Raises:
        Refusal: there is no such thing.
    """
    own = load_datasets()
    if not is_path(asked):
        kept = read_manifest(find_root() / asked) if asked not in own else None
        if kept is not None and kept.format in FORMATS:
            return asked, DataSet(nature=kept.nature, sha256=kept.sha256, format=kept.format), None
        find_names("data set", [asked], own)
        return asked, own[asked], None
    path = Path(asked)
    if path.is_dir():
        return _find_in_folder(path, own)
    if not path.exists():
        raise Refusal(f"{asked}: no such file or folder; give a data set's name, FILE.toml or FOLDER")
    described = load_datasets(path)
    if len(described) > 1:
        raise Refusal(f"{asked}: {len(described)} data sets in it; give one a file")
    ((name, data),) = described.items()
    if name in own:
        raise Refusal(f"{asked}: {name} is a data set of this project's; give yours another name")
    if not data.archives:
        raise Refusal(f"{asked}: {name} names no archives; only this project's own data are generated")
    return name, data, None


def _find_in_folder(path: Path, own: Mapping[str, DataSet]) -> tuple[str, DataSet, Path]:
    name_of_format = recognise(path)
    form = FORMATS[name_of_format]
    lack = form.find_lack(path)
    if lack is not None:
        raise Refusal(f"{path}: {lack}; a folder of data in {form.title} format holds {form.layout}")
    identity = form.identify(path)
    for name, data in own.items():
        # Known by its unpacked files, or by its archives.
        if data.form is form and identity in (data.sha256, identify(data.archives)):
            return name, data, path
    nature = f"{path.resolve().name}: a folder of the user's own, in {form.title} format"
    # Files that are taken as they are have the same identity afterwards.
    pinned = None if form.archives[0] == form.sources[0].name else identity
    own_set = DataSet(nature=nature[:300], sha256=pinned, format=name_of_format)
    return f"{OWN}{identity[:12]}", own_set, path


def check(folder: Path, data: DataSet) -> Manifest | str:
    """Return the manifest of a set that is as it should be, or what is wrong."""
    found = verify(folder)
    if isinstance(found, str):
        return found
    if found.made_from != _tell_origin(data) and data.archives:
        return "it was made from other archives"
    if data.sha256 not in (None, found.sha256):
        return "it holds other data than are pinned"
    return data.form.find_fault(folder, data.images) or found


def _make(raw: Path, name: str, data: DataSet, source: Path | None, say: Say) -> None:
    if source is not None:
        data.form.take(source, raw)
    elif data.archives:
        many = len(data.archives)
        say(f"{name}: downloading {many} archive{'s' * (many > 1)}")
        fetch(data.archives, data.mirrors, raw, data.form.unpack, say)
    elif name in data.form.generate:
        data.form.generate[name](raw)
    else:
        raise Refusal(
            f"{name}: its files were damaged, and only the folder or definition that they came from has "
            "them; give that by --data"
        )


def _tell_maker(data: DataSet, source: Path | None) -> str:
    if source is not None:
        return f"{source} changed meanwhile and holds"
    return "its archives hold" if data.archives else "this machine made"


def _tell_origin(data: DataSet) -> str:
    return identify(data.archives) if data.archives else ""


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="nox -s data --", description="Prepare data sets and verify them.")
    parser.add_argument("sets", nargs="*", metavar="NAME|FILE.toml|FOLDER", default=DEFAULTS)
    parser.add_argument("--check", action="store_true", help="make nothing; say what is missing or damaged")
    said = parser.parse_args(list(arguments))
    status = ExitStatus.MEASURED
    for asked in said.sets:
        if said.check:
            name, data, _ = find(asked)
            found = check(find_root() / name, data)
            words = found if isinstance(found, str) else f"whole, {found.sha256[:12]}"
            status = ExitStatus.PARTLY_MEASURED if isinstance(found, str) else status
            print(f"{name}: {words}: {find_root() / name}", flush=True)
        else:
            ready = prepare(asked, lambda line: print(line, flush=True))
            print(f"{ready.name}: {ready.sha256[:12]} in {ready.folder}: {ready.nature}", flush=True)
    return status


if __name__ == "__main__":
    run_program("data", main)
