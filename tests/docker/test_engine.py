"""The engine of this host, asked for real."""

import pytest

from scripts.engine import Engine, connect, translated_errors
from scripts.errors import Refusal


def test_the_facts_are_those_of_the_engine(engine: Engine) -> None:
    info = engine.api.info()
    facts = engine.facts
    assert facts.endpoint.startswith("unix:///")
    assert facts.version == info["ServerVersion"]
    assert (facts.memory_bytes, facts.cpus) == (info["MemTotal"], info["NCPU"])
    assert facts.api_version == engine.api.version()["ApiVersion"]
    assert "runc" in facts.runtimes
    assert all(engine.describe().values())


def test_an_endpoint_by_variable_is_the_same_engine(engine: Engine) -> None:
    again = connect({"DOCKER_HOST": engine.facts.endpoint})
    again.api.close()
    assert again.facts == engine.facts


def test_an_image_that_is_not_there_is_known_as_such(engine: Engine) -> None:
    """C8"""
    assert not engine.has_image("rematch/none:none")
    with pytest.raises(Refusal, match="nox -s images"), translated_errors():
        engine.api.create_container("rematch/none:none")


def test_a_folder_that_the_engine_does_not_see_is_recognised(engine: Engine, small_image: str) -> None:
    from docker.types import Mount

    mount = Mount("/a", "/nowhere/at/all", type="bind")
    configuration = engine.api.create_host_config(mounts=[mount])
    with pytest.raises(Refusal, match="does not see this host's files"), translated_errors():
        engine.api.create_container(small_image, host_config=configuration)
