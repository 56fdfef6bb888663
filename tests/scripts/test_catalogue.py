from pathlib import Path

import pytest

from scripts.catalogue import find_names, load_catalogue
from scripts.errors import ExitStatus, Refusal

WHOLE = """
title = "Toy"
baseline = "torch-eager"
[parameters]
size = 8
[tolerances]
gradients = 1e-8
update = 1e-8
losses = { fp32 = 1e-5 }
[editions.fair]
measures = ["step"]
says = "fair"
[variants.torch-eager]
framework = "torch"
overhead_s = 2
says = "eagerly"
[profiles.quick]
bound_s = 10
"""


def write(folder: Path, content: str) -> Path:
    path = folder / "toy" / "workload.toml"
    path.parent.mkdir()
    path.write_text(content)
    return path


def test_every_committed_workload_is_read_and_has_the_profiles_that_can_be_asked_for() -> None:
    catalogue = load_catalogue()
    assert {"mlp", "ceiling"} <= catalogue.keys()
    assert catalogue["mlp"].baseline == "torch-eager"
    assert catalogue["ceiling"].ceiling
    for workload in catalogue.values():
        assert {"smoke", "quick", "standard"} <= workload.profiles.keys()


def test_a_workload_says_which_variants_are_in_an_edition(tmp_path: Path) -> None:
    write(
        tmp_path, WHOLE + '[variants.fit]\nframework="torch"\noverhead_s=1\nsays=""\neditions=["article"]\n'
    )
    toy = load_catalogue(tmp_path)["toy"]
    assert toy.has("torch-eager", "fair")
    assert not toy.has("torch-eager", "article"), "the workload has no such edition"
    assert not toy.has("fit", "fair")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (WHOLE.replace('baseline = "torch-eager"', 'baseline = "torch-lazy"'), "torch-lazy"),
        (WHOLE.replace("overhead_s = 2", "overhead_s = 2\noverheads = 3"), "overheads"),
        (WHOLE.replace("overhead_s = 2", "overhead_s = 0"), "overhead_s"),
        (WHOLE.replace("bound_s = 10", "bound_s = 10\nparameters = { sise = 3 }"), "sise"),
        (WHOLE.replace("[parameters]", "[parameters"), "line 4"),
        (WHOLE.replace('"fair"', "fair"), "workload.toml"),
        ("", "title"),
    ],
)
def test_a_workload_that_contradicts_its_format_is_refused_with_file_and_field(
    tmp_path: Path, content: str, words: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(Refusal) as refused:
        load_catalogue(tmp_path)
    assert str(path) in refused.value.message
    assert words in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.status == ExitStatus.BAD_OPTIONS


def test_a_folder_without_workloads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=str(tmp_path)):
        load_catalogue(tmp_path)


def test_an_unknown_name_gets_the_nearest_real_ones() -> None:
    known = ["torch-eager", "torch-script", "tensorflow-graph"]
    with pytest.raises(Refusal, match="no variant 'torch-eagre'; did you mean torch-eager"):
        find_names("variant", ["torch-script", "torch-eagre"], known)


def test_a_name_that_is_near_none_gets_all_real_ones() -> None:
    with pytest.raises(Refusal, match="there is mlp, mnist"):
        find_names("workload", ["zzz"], ["mnist", "mlp"])


def test_names_come_back_in_the_order_given_and_once() -> None:
    assert find_names("workload", ["b", "a", "b"], ["a", "b", "c"]) == ["b", "a"]
