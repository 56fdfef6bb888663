"""A base from Debian's packages, made for real, with a Python that Debian lacks."""

import json
from pathlib import Path

from scripts.engine import Engine
from scripts.local_base import ensure_local_base, find_local_base

OLD = "3.7"


def test_a_base_has_the_python_that_debian_lacks_with_all_that_it_links_to(
    engine: Engine, tmp_path: Path
) -> None:
    """As root, with debootstrap, on a host that has this Python."""
    was_there = find_local_base(engine, OLD)
    base = ensure_local_base(engine, OLD, print, tmp_path / "log")
    code = "import bz2, ctypes, json, sqlite3, ssl, sys, venv, zlib; print(json.dumps(sys.version_info[:2]))"
    host = engine.api.create_host_config(network_mode="none")
    container = engine.api.create_container(
        base, [f"python{OLD}", "-c", code], host_config=host, user="54321:54321"
    )["Id"]
    try:
        engine.api.start(container)
        status = engine.api.wait(container, timeout=60)["StatusCode"]
        output = engine.api.logs(container).decode()
        assert status == 0, output
        assert json.loads(output) == [3, 7]
        # It stays what it is for as long as its recipe does.
        assert ensure_local_base(engine, OLD, print, tmp_path / "again") == base
        assert not (tmp_path / "again").exists()
    finally:
        engine.api.remove_container(container, force=True)
        if was_there is None:
            engine.api.remove_image(base, force=True)
