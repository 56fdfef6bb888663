import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from scripts.budget import SAMPLING_SHARE, UNBOUNDED_S, USED, limit_launch
from scripts.catalogue import EditionEntry, ProfileEntry, VariantEntry, Workload, load_catalogue
from scripts.cells import Place, Surroundings
from scripts.closing import describe_plan
from scripts.contract import Threads
from scripts.errors import Refusal
from scripts.options import Options
from scripts.order import group_of, make_proofs
from scripts.plan import CONTAINER_S, make_plan
from scripts.profiles import PROFILES
from tests.scripts.plans import OLD_TORCH, PLACES, ROOF, TOY, names, plan


def test_quick_takes_the_headline_in_the_fair_edition_and_the_baseline_twice() -> None:
    made = plan(profile="quick", workloads=("toy",))
    assert names([cell for cell in made.cells if cell.workload == "toy"]) == [
        "fair torch-eager",
        "fair torch-eager again",
        "fair tensorflow-graph",
    ]
    assert made.blocks == 5


def test_smoke_takes_every_variant_of_both_editions_with_its_own_parameters() -> None:
    made = plan(profile="smoke")
    assert names([cell for cell in made.cells if cell.workload == "toy"]) == [
        "article torch-eager",
        "article torch-eager again",
        "article torch-compile",
        "article tensorflow-graph",
        "article tensorflow-fit",
        "fair torch-eager",
        "fair torch-eager again",
        "fair torch-compile",
        "fair tensorflow-graph",
    ]
    assert {cell.parameters["size"] for cell in made.cells if cell.workload == "toy"} == {2}


def test_ceilings_join_every_plan_on_their_own_in_the_stacks_that_are_planned() -> None:
    made = plan(workloads=("toy",), variants=("torch-compile",))
    ceilings = [cell for cell in made.cells if cell.role == "ceiling"]
    assert [(cell.variant, cell.stack, cell.baseline) for cell in ceilings] == [
        ("torch-roof", "torch-2", None)
    ]
    assert [sum(cell.role == "ceiling" for cell in block) for block in made.order()] == [1, 1, 0, 0, 0]
    smoke = plan(profile="smoke", workloads=("toy",))
    assert [sum(cell.role == "ceiling" for cell in block) for block in smoke.order()] == [2, 0]


def test_ceilings_may_be_measured_alone() -> None:
    assert {cell.role for cell in plan(workloads=("roof",)).cells} == {"ceiling"}


def test_a_cell_says_everything_that_it_is() -> None:
    cell = plan(variants=("torch-compile",), device="cuda:0", precisions=("bf16",)).cells[2]
    assert cell.id == "toy_fair_torch-compile_torch-2_venv_cuda-0_bf16"
    assert (cell.framework, cell.module, cell.baseline) == ("torch", "torch_compiled", "torch-eager")
    assert (cell.role, cell.device, cell.tolerances.losses) == ("variant", "cuda:0", 1e-2)
    assert (cell.identity.lock_sha256, cell.identity.workload_sha256) == ("1" * 64, "a" * 64)
    assert (cell.cache_state, cell.measures) == ("fresh", ["step"])


def test_cells_are_named_apart_and_the_twin_by_its_ending() -> None:
    made = plan(profile="smoke", precisions=("fp32", "bf16"))
    ids = [cell.id for cell in made.cells]
    assert len(set(ids)) == len(ids)
    assert sorted(name for name in ids if name.endswith("_aa")) == [
        f"toy_{edition}_torch-eager_torch-2_venv_cpu_{precision}_aa"
        for edition in ("article", "fair")
        for precision in ("bf16", "fp32")
    ]


def test_threads_are_those_of_the_usable_cpus_equal_in_every_cell() -> None:
    """T11"""
    assert {cell.threads for cell in plan(cpus=3).cells} == {Threads(3, 3)}
    assert {cell.threads for cell in plan(cpus=3, threads=2).cells} == {Threads(2, 2)}


def test_named_variants_are_taken_whether_headline_or_not_and_the_baseline_is_added() -> None:
    made = plan(variants=("tensorflow-graph",))
    assert names([cell for cell in made.cells if cell.role != "ceiling"]) == [
        "fair torch-eager",
        "fair torch-eager again",
        "fair tensorflow-graph",
    ]
    assert made.notes == ("toy: torch-eager is added: the others are compared with it",)


def test_another_baseline_takes_the_place_of_the_workloads_own() -> None:
    made = plan(variants=("torch-compile", "tensorflow-graph"), baseline="tensorflow-graph")
    assert [(cell.variant, cell.role) for cell in made.cells if cell.role != "ceiling"] == [
        ("tensorflow-graph", "baseline"),
        ("tensorflow-graph", "a_a"),
        ("torch-compile", "variant"),
    ]
    assert {cell.baseline for cell in made.cells if cell.role != "ceiling"} == {"tensorflow-graph"}


def test_an_older_stack_is_measured_beside_the_current_one_which_keeps_the_baseline() -> None:
    made = plan(stacks=("torch-1", "torch-2"), variants=("torch-eager",))
    assert [(cell.stack, cell.role) for cell in made.cells if cell.role != "ceiling"] == [
        ("torch-2", "baseline"),
        ("torch-2", "a_a"),
        ("torch-1", "variant"),
    ]


def test_a_stack_that_lacks_the_baselines_framework_is_compared_with_the_current_one() -> None:
    made = plan(stacks=("tensorflow-2",), variants=("tensorflow-graph",))
    assert {(cell.variant, cell.stack) for cell in made.cells if cell.workload == "toy"} == {
        ("torch-eager", "torch-2"),
        ("tensorflow-graph", "tensorflow-2"),
    }


def test_two_runners_of_a_stack_meet_in_one_group_where_the_first_keeps_the_baseline() -> None:
    made = plan(runners=("venv", "docker"), variants=("torch-eager",))
    contest = [cell for cell in made.cells if cell.role != "ceiling"]
    assert [(cell.stack, cell.runner, cell.role) for cell in contest] == [
        ("torch-2", "venv", "baseline"),
        ("torch-2", "venv", "a_a"),
        ("torch-2", "docker", "variant"),
    ]
    assert len({group_of(cell) for cell in contest}) == 1
    assert {cell.runner for cell in made.cells if cell.role == "ceiling"} == {"venv", "docker"}


def test_a_container_is_given_the_time_that_making_it_takes() -> None:
    here, there = (plan(runners=(runner,)) for runner in ("venv", "docker"))
    added = [
        there.overheads_s[of.id] - here.overheads_s[cell.id]
        for cell, of in zip(here.cells, there.cells, strict=True)
    ]
    assert added == [pytest.approx(CONTAINER_S)] * len(added)


def test_variants_without_a_stack_are_left_out_and_said() -> None:
    made = plan(stacks=("torch-2",))
    assert {cell.stack for cell in made.cells} == {"torch-2"}
    assert made.notes == ("toy: tensorflow-graph is left out: no stack that is asked for has tensorflow",)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"workloads": ("toi",)}, "no workload 'toi'; did you mean toy"),
        ({"variants": ("torch-eagr",)}, "no variant 'torch-eagr'; did you mean torch-eager"),
        ({"stacks": ("torch-3",)}, "no stack 'torch-3'; did you mean torch-"),
        ({"baseline": "torch-compiled"}, "no baseline 'torch-compiled'; did you mean torch-compile"),
        ({"stacks": ("torch-2",), "variants": ("tensorflow-graph",)}, "nothing to measure"),
        ({"baseline": "tensorflow-fit"}, "not in the fair edition"),
        ({"precisions": ("tf32",)}, "no tolerance for tf32"),
    ],
)
def test_what_cannot_be_planned_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        plan(**said)


def with_bound(bound_s: float) -> dict[str, Workload]:
    return {"toy": changed(TOY, profiles={"quick": ProfileEntry(bound_s=bound_s)})}


def test_the_profiles_bound_is_divided_among_the_launches_and_kept() -> None:
    made = plan(catalogue=with_bound(100), workloads=("toy",))
    assert made.estimate_s() == pytest.approx(100 * USED, rel=0.001)
    assert len({cell.protocol for cell in made.cells}) == 1


def test_ceilings_are_measured_within_the_contests_bound() -> None:
    made = plan(catalogue=with_bound(200) | {"roof": ROOF}, workloads=("toy",))
    assert "ceiling" in {cell.role for cell in made.cells}
    assert made.bound_s == 200
    assert made.estimate_s() == pytest.approx(200 * USED, rel=0.001)


def test_more_blocks_leave_less_for_each_launch() -> None:
    few, many = (plan(catalogue=with_bound(400), blocks=blocks).cells[0].protocol for blocks in (5, 10))
    assert many.budget_s < few.budget_s
    assert many.warmup_s < few.warmup_s


def test_a_bound_that_cannot_hold_leaves_every_launch_the_least_and_is_exceeded_in_the_open() -> None:
    made = plan(catalogue=with_bound(1))
    assert made.cells[0].protocol.budget_s == pytest.approx(
        PROFILES["quick"].least_s * SAMPLING_SHARE, rel=1e-3
    )
    assert made.bound_s == 1
    assert made.estimate_s() > 1


def test_a_generous_bound_is_not_used_up() -> None:
    made = plan(catalogue=with_bound(10000))
    assert made.estimate_s() < 10000 / 10


def test_a_budget_for_each_launch_overrides_the_bound() -> None:
    assert {cell.protocol.budget_s for cell in plan(budget_s=0.25).cells} == {0.25}


def test_each_cell_of_a_contest_is_proved_once_the_twin_and_the_ceilings_not() -> None:
    made = plan(profile="smoke", workloads=("toy",), cpus=4)
    proofs = make_proofs(made.cells, cpus_usable=4)
    assert len(proofs) == 7
    assert {cell.role for cell in proofs} == {"baseline", "variant"}
    assert {(cell.purpose, cell.cache_state, cell.block, cell.threads) for cell in proofs} == {
        ("proof", "warm", 0, Threads(1, 1))
    }
    assert make_proofs(made.cells, cpus_usable=16)[0].threads == Threads(4, 4)


def test_every_block_holds_every_cell_once_in_a_place_of_its_own() -> None:
    made = plan(profile="standard", workloads=("toy",))
    ids = {cell.id for cell in made.cells if cell.role != "ceiling"}
    for number, block in enumerate(made.order()):
        contest = [cell.id for cell in block if cell.role != "ceiling"]
        assert len(contest) == len(ids)
        assert set(contest) == ids
        assert [cell.position for cell in block] == list(range(len(block)))
        assert {cell.block for cell in block} == {number}


def test_the_cells_of_a_group_stay_together_and_groups_and_cells_change_places() -> None:
    blocks = plan(profile="standard", workloads=("toy",)).order()
    for block in blocks:
        groups = [(cell.workload, cell.edition) for cell in block]
        changes = sum(before != after for before, after in itertools.pairwise(groups))
        assert changes == len(set(groups)) - 1
    assert len({block[0].edition for block in blocks}) == 2
    assert len({tuple(cell.id for cell in block if cell.edition == "article") for block in blocks}) > 5


def test_the_seed_draws_the_order() -> None:
    orders = [[cell.id for block in plan(seed=seed).order() for cell in block] for seed in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_a_block_is_ordered_alike_however_many_follow() -> None:
    few, many = (plan(blocks=blocks).order() for blocks in (2, 4))
    assert [cell.id for cell in few[1]] == [cell.id for cell in many[1]]


def make_together(**changes: Any) -> dict[str, Workload]:
    loaders = {
        "torch-plain": VariantEntry("torch", 2, "", headline=True),
        "torch-fed": VariantEntry("torch_fed", 3, "", headline=True, needs=["torch", "feeder"]),
    }
    return {"loaders": changed(TOY, baseline="torch-plain", variants=loaders, **changes)}


MIXED = Place("mixed", {"torch": "2.12.0", "feeder": "2"}, current=True, lock_sha256="4" * 64)


def place(
    catalogue: dict[str, Workload], places: Sequence[Place] = (*PLACES, MIXED), **said: Any
) -> dict[str, set[str]]:
    """Plan with a stack that holds more than one framework's, and say where each variant went."""
    around = Surroundings("run", places, dict.fromkeys(catalogue, "a" * 64), None, 2, 1)
    found: dict[str, set[str]] = {}
    for cell in make_plan(Options(**said), catalogue, around).cells:
        found.setdefault(cell.variant, set()).add(cell.stack)
    return found


def test_a_variant_goes_to_the_leanest_current_stack_that_has_what_it_needs() -> None:
    assert place(make_together()) == {"torch-plain": {"torch-2"}, "torch-fed": {"mixed"}}
    # What another needs besides does not draw a workload's variants into its stack.
    assert place({"toy": TOY})["torch-eager"] == {"torch-2"}


def test_all_stacks_are_the_leanest_of_each_set_of_versions() -> None:
    fat = replace(OLD_TORCH, name="torch-1-fat", versions={**OLD_TORCH.versions, "feeder": "1"})
    other = replace(fat, name="torch-1.5", versions={"torch": "1.5", "feeder": "1"})
    places = [fat, other, MIXED, *PLACES]
    found = place({"toy": TOY}, places, stacks=("all",), variants=("torch-eager", "tensorflow-graph"))
    assert found == {
        "torch-eager": {"torch-1", "torch-1.5", "torch-2"},
        "tensorflow-graph": {"tensorflow-2"},
    }
    fed = place(make_together(), places, stacks=("all",))
    assert fed["torch-fed"] == {"torch-1-fat", "torch-1.5", "mixed"}


def test_all_stacks_leave_the_baseline_to_a_current_one() -> None:
    cells = plan(stacks=("all",), variants=("torch-eager",)).cells
    assert [(cell.stack, cell.role) for cell in cells if cell.role != "ceiling"] == [
        ("torch-2", "baseline"),
        ("torch-2", "a_a"),
        ("torch-1", "variant"),
    ]


def test_variants_that_belong_together_go_to_one_stack_unless_stacks_are_named() -> None:
    together = make_together(together=True)
    assert place(together) == {"torch-plain": {"mixed"}, "torch-fed": {"mixed"}}
    assert place(together, stacks=("torch-2",), variants=("torch-plain",)) == {"torch-plain": {"torch-2"}}


def test_a_measure_is_taken_by_those_variants_only_that_the_profile_names() -> None:
    quick = ProfileEntry(
        bound_s=100, measures=["load_epoch", "train_epoch"], only={"train_epoch": ["torch-eager"]}
    )
    toy = changed(TOY, profiles={**TOY.profiles, "quick": quick})
    taken = {cell.variant: cell.measures for cell in plan(catalogue={"toy": toy}).cells}
    assert taken == {
        "torch-eager": ["load_epoch", "train_epoch"],
        "tensorflow-graph": ["load_epoch"],
    }
    # The article's measures are its own.
    article = plan(catalogue={"toy": toy}, editions=("article",))
    assert {tuple(cell.measures) for cell in article.cells} == {("call",)}


def test_epochs_get_all_of_their_time_for_sampling_and_every_measure_the_same() -> None:
    quick = ProfileEntry(
        bound_s=100, measures=["load_epoch", "train_epoch"], only={"train_epoch": ["torch-eager"]}
    )
    toy = changed(TOY, profiles={**TOY.profiles, "quick": quick})
    made = plan(catalogue={"toy": toy})
    (protocol,) = {cell.protocol for cell in made.cells}
    assert protocol.warmup_s == 0
    assert made.estimate_s() <= 100 * USED + 1
    given = plan(catalogue={"toy": toy}, budget_s=3.0)
    assert {cell.protocol.budget_s for cell in given.cells} == {1.5}


def test_a_profile_may_expect_other_times_outside_sampling() -> None:
    quick = ProfileEntry(bound_s=100, overheads_s={"torch-eager": 7})
    toy = changed(TOY, profiles={**TOY.profiles, "quick": quick})
    made = plan(catalogue={"toy": toy})
    expected = {cell.variant: made.overheads_s[cell.id] for cell in made.cells}
    assert expected == {"torch-eager": 7, "tensorflow-graph": 3}


def test_a_profile_may_have_fewer_blocks_unless_the_user_says_how_many() -> None:
    standard = ProfileEntry(bound_s=100, blocks=5)
    catalogue = {"roof": ROOF, "toy": changed(TOY, profiles={**TOY.profiles, "standard": standard})}
    for asked, expected in ((None, 5), (7, 7)):
        made = plan(catalogue=catalogue, profile="standard", blocks=asked)
        counts = Counter(cell.id for block in made.order() for cell in block if cell.role != "ceiling")
        assert set(counts.values()) == {expected}
    # Ceilings are no contest, and stand in the first blocks.
    ceilings = [cell.block for block in made.order() for cell in block if cell.role == "ceiling"]
    assert set(ceilings) == set(range(PROFILES["standard"].ceiling_blocks))


def make_published(**changes: Any) -> dict[str, Workload]:
    epochs_s: dict[str, float] = {"cpu": 10, "cuda": 4}
    entry = ProfileEntry(variants=["torch-eager", "tensorflow-fit"], epochs_s=epochs_s, **changes)
    editions = {**TOY.editions, "article": EditionEntry(["article_epoch"], "")}
    parameters = {**TOY.parameters, "epochs": 80}
    profiles = {**TOY.profiles, "published": entry}
    toy = changed(TOY, editions=editions, parameters=parameters, profiles=profiles)
    return {"toy": toy, "other": TOY}


def test_a_profile_without_a_bound_takes_as_long_as_its_epochs_and_says_how_long_first() -> None:
    made = plan(catalogue=make_published(), profile="published")
    assert made.notes == ("other is left out: it has no profile published",)
    assert {cell.variant for cell in made.cells} == {"torch-eager", "tensorflow-fit"}
    assert {cell.edition for cell in made.cells} == {"article"}
    assert made.bound_s is None
    # Two baselines and a variant, 80 epochs of 10 s in each of five blocks, and what they take beside that.
    assert made.estimate_s() == pytest.approx(5 * 3 * 800, rel=0.02)
    on_gpu = plan(catalogue=make_published(), profile="published", device="cuda:0")
    assert on_gpu.estimate_s() == pytest.approx(5 * 3 * 320, rel=0.02)
    for cell in made.cells:
        # Its budget ends no epoch, and nothing but a hang ends the launch.
        assert cell.protocol.budget_s == UNBOUNDED_S
        assert limit_launch(cell, 2) > 20 * 800
        assert limit_launch(changed(cell, purpose="proof"), 2) < 600


def test_a_plan_without_a_bound_says_what_a_launch_takes_and_where_its_epochs_are() -> None:
    catalogue, said = make_published(), []  # type: dict[str, Workload], list[str]
    describe_plan(plan(catalogue=catalogue, profile="published"), catalogue, said.append)
    assert "  Toy: all epochs, about 13 min a launch, each in logs/ as it ends; 2 threads" in said
    assert any(line.endswith("the profile allows as long as it takes") for line in said)
    assert not any("takes longer" in line for line in said)


def test_a_workload_that_is_asked_for_must_have_the_profile() -> None:
    with pytest.raises(Refusal, match="there is no profile of other 'published'"):
        plan(catalogue=make_published(), profile="published", workloads=("other",))


def test_every_standard_profile_together_keeps_within_three_quarters_of_an_hour() -> None:
    catalogue = load_catalogue()
    contests = [workload for workload in catalogue.values() if not workload.ceiling]
    for profile, most_s in (("smoke", 960), ("quick", 1200), ("standard", 2700)):
        assert sum(workload.profiles[profile].bound_s or 1e9 for workload in contests) <= most_s
