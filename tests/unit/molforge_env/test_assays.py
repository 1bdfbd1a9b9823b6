from __future__ import annotations

import pytest

from molforge_env.assays import (
    TOOL_COSTS,
    information_value,
    known_estimates,
    measured_properties,
    merge_readings,
    read_assay,
    runs_of,
)
from molforge_env.models import TOOLS
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import true_properties

MOLECULE = molecule_from_code("0121")
TRUE = true_properties(MOLECULE, trap=False, shift=False)


def test_every_tool_has_a_price_and_something_to_measure() -> None:
    assert list(TOOL_COSTS) == list(TOOLS)
    assert sum(TOOL_COSTS.values()) == 5150
    assert measured_properties("run_md_simulation") == ("potency", "toxicity", "synth")


def test_equal_molecule_tool_and_run_give_an_equal_reading() -> None:
    one = read_assay(MOLECULE, "dock_target", run=1, properties=TRUE)

    assert one == read_assay(MOLECULE, "dock_target", run=1, properties=TRUE)
    assert one != read_assay(MOLECULE, "dock_target", run=2, properties=TRUE)


def test_a_reading_is_the_recorded_one() -> None:
    readings = read_assay(MOLECULE, "run_md_simulation", run=1, properties=TRUE)

    assert [(row.property_name, row.estimate, row.confidence_low, row.confidence_high) for row in readings] == [
        ("potency", 0.7458, 0.5658, 0.9258),
        ("toxicity", 0.4854, 0.3054, 0.6654),
        ("synth", 0.8355, 0.6555, 1.0),
    ]


@pytest.mark.parametrize("run", [1, 2, 3, 7])
def test_noise_and_bounds_shrink_with_every_run(run: int) -> None:
    (reading,) = read_assay(MOLECULE, "dock_target", run=run, properties=TRUE)

    assert abs(reading.estimate - TRUE.potency) <= 0.08 / run + 1e-4
    assert reading.confidence_low == pytest.approx(reading.estimate - max(0.03, 0.18 / run), abs=1e-4)


def test_literature_knows_no_molecule() -> None:
    here = read_assay(MOLECULE, "search_literature", run=1, properties=TRUE)
    there = read_assay(molecule_from_code("3333"), "search_literature", run=1, properties=TRUE)

    assert here[0].estimate == there[0].estimate == 0.53
    assert (here[0].confidence_low, here[0].confidence_high) == (0.45, 0.61)


def test_literature_saturates() -> None:
    (reading,) = read_assay(MOLECULE, "search_literature", run=20, properties=TRUE)

    assert (reading.estimate, reading.confidence_high) == (0.95, 1.0)


def test_a_repeated_reading_keeps_its_place_and_takes_the_new_value() -> None:
    first = read_assay(MOLECULE, "dock_target", run=1, properties=TRUE)
    other = read_assay(MOLECULE, "evaluate_properties", run=1, properties=TRUE)
    again = read_assay(MOLECULE, "dock_target", run=2, properties=TRUE)
    merged = merge_readings(merge_readings(first, other), again)

    assert [row.tool_name for row in merged] == ["dock_target", "evaluate_properties", "evaluate_properties"]
    assert merged[0].runs == 2
    assert known_estimates(merged, MOLECULE)["potency"] == other[0].estimate


def test_readings_of_another_molecule_say_nothing_about_this_one() -> None:
    readings = read_assay(MOLECULE, "dock_target", run=1, properties=TRUE)

    assert known_estimates(readings, molecule_from_code("0000")) == {}


def test_the_value_of_information_decays_with_runs_and_depends_on_the_difficulty() -> None:
    assert information_value("assay_toxicity", runs=0, is_easy=True) == 0.52
    assert information_value("assay_toxicity", runs=0, is_easy=False) == 0.78
    assert information_value("dock_target", runs=2, is_easy=False) == 0.0992


def test_runs_are_counted_for_each_molecule_and_tool() -> None:
    runs = {("0121", "dock_target"): 2}

    assert runs_of(runs, MOLECULE, "dock_target") == 2
    assert runs_of(runs, MOLECULE, "evaluate_novelty") == 0
