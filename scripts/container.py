"""One container: started, waited for without polling, and removed whatever it is doing."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.advice import advise
from scripts.contract import Cause
from scripts.engine import Engine, explain_error, tell_error
from scripts.errors import ExitStatus, Refusal
from scripts.process import Ending

CONFLICT = 409


class Container:
    """A container that was created with its input open."""

    def __init__(self, engine: Engine, name: str) -> None:
        """
        Args:
            name: its id.
        """
        self._engine = engine
        self._name = name

    def run(self, log: Path, limit_s: float) -> Ending:
        """Start it and wait for its end; after ``limit_s`` seconds, bring it about. What it printed goes to
        the file ``log``.

        Raises:
            docker.errors.DockerException, requests.RequestException: the engine did not start it, or lost it.
        """
        api = self._engine.api
        with self._holding_input():
            begin = time.monotonic()
            api.start(self._name)
            timed_out = not self._await_exit(begin, limit_s)
            seconds = time.monotonic() - begin
        state = api.inspect_container(self._name)["State"]
        log.write_bytes(api.logs(self._name))
        status = int(state["ExitCode"])
        return Ending(
            returncode=128 - status if status > 128 else status,
            timed_out=timed_out,
            seconds=seconds,
            oom_kills=int(bool(state["OOMKilled"])),
        )

    def remove(self) -> None:
        """Kill and remove it; that it is gone already is as good.

        Raises:
            Refusal: it outlives that, and would disturb what is timed next, or the engine is gone.
        """
        from docker.errors import APIError, NotFound
        from requests import RequestException

        try:
            self._engine.api.remove_container(self._name, v=True, force=True)
        except NotFound:
            return
        except APIError as error:
            if error.status_code == CONFLICT:
                self._await_removal()
                return
            raise Refusal(
                f"container {self._name[:12]} cannot be removed ({tell_error(error)}): "
                f"`docker rm -f {self._name[:12]}`, then go on with --resume",
                ExitStatus.HOST_CANNOT,
            ) from error
        except RequestException as error:
            raise refuse_to_go_on(error) from error

    @contextlib.contextmanager
    def _holding_input(self) -> Iterator[None]:
        """Keep the container's input open, which ends when this process does, however it does."""
        stream = self._engine.api.attach_socket(self._name, {"stdin": 1, "stream": 1})
        # What the SDK returns is a file over the connection, which outlives it until it is collected.
        connection = stream._sock
        try:
            yield
        finally:
            stream.close()
            connection.close()

    def _await_exit(self, begin: float, limit_s: float) -> bool:
        from docker.errors import APIError
        from requests import ConnectionError as Disconnection
        from requests import ReadTimeout

        api = self._engine.api
        try:
            api.wait(self._name, timeout=math.ceil(limit_s))
            return True
        except (ReadTimeout, Disconnection):
            # The same is said of an engine that is gone.
            if time.monotonic() - begin < limit_s:
                raise
        # That it ended meanwhile is no error.
        with contextlib.suppress(APIError):
            api.kill(self._name)
        api.wait(self._name)
        return False

    def _await_removal(self) -> None:
        """Wait for the removal by somebody else."""
        from docker.errors import NotFound

        with contextlib.suppress(NotFound):
            self._engine.api.wait(self._name, condition="removed")


def explain_failure(error: Exception, log: Path) -> Ending:
    """Say why the engine did not start a container, or lost it.

    Raises:
        Refusal: the engine is gone, and every further launch with it.
    """
    from docker.errors import APIError

    if not isinstance(error, APIError):
        raise refuse_to_go_on(error) from error
    said = tell_error(error)
    with log.open("a") as file:
        file.write(f"the container engine said: {said}\n")
    advice = advise(said)
    kind = "image" if advice is not None and advice.kind == "image" else "engine"
    cause = Cause(kind, explain_error(error).message)
    return Ending(returncode=1, timed_out=False, seconds=0.0, cause=cause)


def refuse_to_go_on(error: Exception) -> Refusal:
    """Say that the engine is gone, and what keeps what was measured."""
    return Refusal(f"{explain_error(error).message}; then go on with --resume", ExitStatus.HOST_CANNOT)
