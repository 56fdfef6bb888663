"""Options of the host's programs, refused in one line where they are wrong."""

import argparse
from typing import NoReturn

from scripts.errors import Refusal


class Parser(argparse.ArgumentParser):
    """Tells of a wrong option in one line, as everything else that is foreseeable."""

    def error(self, message: str) -> NoReturn:
        raise Refusal(f"{message}; see --help")
