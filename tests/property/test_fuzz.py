"""A short run of the fuzzer over every reader; `make soak` runs a hundred thousand inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.fuzz import READERS, Stage, Tally, fuzz, set_stage
from benchmarks.spoiling import spoil

INPUTS = 1_200


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with set_stage() as made:
        yield made


@pytest.fixture(scope="module")
def tallies(stage: Stage) -> dict[str, Tally]:
    return fuzz(stage, INPUTS, seed=7)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_reader_stops_on_anything(reader: object, tallies: dict[str, Tally]) -> None:
    assert tallies[reader.name].tracebacks == []
    assert tallies[reader.name].inputs > 0


def test_a_reader_that_stops_is_counted_with_its_traceback(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise ZeroDivisionError("stopped")

    monkeypatch.setattr("benchmarks.fuzz.READERS", tuple(reader._replace(read=stop) for reader in READERS))
    broken = [text for tally in fuzz(stage, 5, seed=0).values() for text in tally.tracebacks]

    assert len(broken) == 5
    assert all("ZeroDivisionError: stopped" in text for text in broken)
    assert broken[0].startswith("input ")


def test_an_input_is_made_from_the_seed_and_its_number_alone() -> None:
    from random import Random

    data = b'{"a": [1, 2, {"b": null}]}\n' * 3
    made = [spoil(data, Random(f"3 {number}"), [data]) for number in range(50)]

    assert made == [spoil(data, Random(f"3 {number}"), [data]) for number in range(50)]
    assert len(set(made)) > 40
