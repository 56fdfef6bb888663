import pytest

from tests.workloads.fakes import make_cell
from workloads import frameworks


@pytest.fixture(scope="session")
def framework(tmp_path_factory):
    """PyTorch, configured once: how many operators run at a time cannot be set again in a process."""
    cache = str(tmp_path_factory.mktemp("cache"))
    return frameworks.load(
        make_cell(framework="torch", module="torch", threads={"intra_op": 2, "inter_op": 2}, cache=cache)
    )
