"""Programs in containers, confined as a launch is."""

import json
from typing import Any

from scripts.engine import Engine

STRANGER = "54321:54321"
"""A user whom no image knows."""


def run_program(engine: Engine, image: str, command: list[str], **variables: str) -> str:
    """Run a program to its end and return what it printed."""
    api = engine.api
    host = api.create_host_config(
        network_mode="none",
        read_only=True,
        tmpfs={"/tmp": "exec,mode=1777"},
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
    )
    environment = {"HOME": "/tmp", "USER": "somebody", "TF_CPP_MIN_LOG_LEVEL": "2", **variables}
    container = api.create_container(
        image, command, host_config=host, user=STRANGER, environment=environment
    )["Id"]
    try:
        api.start(container)
        status = api.wait(container, timeout=300)["StatusCode"]
        output = api.logs(container).decode(errors="replace")
        assert status == 0, output
        return str(output)
    finally:
        api.remove_container(container, force=True)


def run_python(engine: Engine, image: str, code: str, program: str = "python", **variables: str) -> Any:
    """Run Python and return what it printed last, as JSON."""
    return json.loads(run_program(engine, image, [program, "-c", code], **variables).splitlines()[-1])
