"""Data sets as data: what ``datasets.toml``, or a file of the user's own, says."""

from pathlib import Path
from typing import Annotated

import msgspec
import msgspec.toml
from msgspec import Meta

from scripts.contract import Name, Sha256
from scripts.errors import Refusal
from scripts.formats import FORMATS, Format

DATASETS = Path(__file__).resolve().parent / "datasets.toml"
PLAIN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class DataSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One data set."""

    nature: Annotated[str, Meta(min_length=1, max_length=300)]
    images: dict[str, Annotated[int, Meta(ge=1)]] = {}
    """By split: ``train`` and ``test``, where they are known."""
    sha256: Sha256 | None = None
    """Identity of the unpacked files, where it is known."""
    mirrors: list[Annotated[str, Meta(pattern="^https?://")]] = []
    archives: dict[Name, Sha256] = {}
    """Sha256 of each archive."""
    format: Name = "mnist"

    @property
    def form(self) -> Format:
        """How its files are opened."""
        return FORMATS[self.format]


def load_datasets(path: Path = DATASETS) -> dict[str, DataSet]:
    """Return the data sets of a file, by name.

    Raises:
        Refusal: it cannot be read, or says something that is no data set.
    """
    try:
        found = msgspec.toml.decode(
            path.read_bytes(), type=dict[Annotated[str, Meta(pattern=PLAIN)], DataSet]
        )
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: {error}") from error
    if not found:
        raise Refusal(f"{path}: no data set in it; one is a table [NAME]")
    for name, data in found.items():
        if data.format not in FORMATS:
            raise Refusal(f"{path}: {name} is of format {data.format!r}; there is {', '.join(FORMATS)}")
        wanted = data.form.archives
        is_known = data.sha256 is not None and not data.archives
        if not is_known and (set(data.archives) != set(wanted) or not data.mirrors):
            raise Refusal(f"{path}: {name} needs mirrors, and archives {', '.join(sorted(wanted))}")
    return found
