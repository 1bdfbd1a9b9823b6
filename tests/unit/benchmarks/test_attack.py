"""A part of the attack on the validator: lies of each kind are found, sealed again or not, and nothing sound is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.attack import OPERATORS, attempt, codes_of
from benchmarks.tampering.believed_edits import BELIEFS
from benchmarks.tampering.corpus import SoundRun
from benchmarks.tampering.forger import forge
from benchmarks.tampering.operator import Operator

BY_NAME = {entry.name: entry for entry in OPERATORS}
TRIED = (
    "rollout: reward raised",
    "rollout: another action",
    "rollout: difficulty of an episode",
    "rollout: hint in a prompt",
    "rollout: best of every group kept",
    "rollout: episode invented for a poor one",
    "rollout: ids of two episodes exchanged",
    "rollout: batches sorted by score",
    "rollout: times of another step",
    "rollout: fault on the first line",
    "rollout: pay for a broken episode",
    "trainer log: reward curve that rises",
    "trainer log: summary row dropped",
    "evaluation: grades of all episodes",
    "evaluation: before and after exchanged",
    "evaluation: worst episode dropped",
    "evaluation: hint in a later prompt",
    "evaluation: larger budget",
    "plan: wider margin",
    "manifest: canonical_share",
    "manifest: beta",
    "manifest: base_model",
    "summary: eval_after",
    "table: cell",
    "plot: other axis",
    "adapter: weights zeroed",
    "seal: root hash",
    "archive: evaluation inside",
)
BELIEVED = (
    "believed: losses and gradient norms invented",
    "believed: a script's actions as the model's, after",
    "believed: other weights under their own hash",
    "believed: other pixels under the same words",
)


@pytest.fixture
def sound(built_run: Path) -> SoundRun:
    return SoundRun("built", built_run)


def test_there_are_many_operators_each_with_its_own_name_and_gain() -> None:
    assert len(OPERATORS) >= 60
    assert len(BY_NAME) == len(OPERATORS)
    assert all(entry.gain for entry in OPERATORS)


@pytest.mark.parametrize("name", TRIED)
def test_a_lie_is_found_sealed_again_or_not(name: str, sound: SoundRun, tmp_path: Path) -> None:
    made = attempt(BY_NAME[name], sound, tmp_path)

    assert made.naive
    assert made.own


@pytest.mark.parametrize("name", BELIEVED)
def test_what_is_said_to_be_believed_is_believed(name: str, sound: SoundRun, tmp_path: Path) -> None:
    (operator,) = (entry.operator for entry in BELIEFS if entry.operator.name == name)

    assert attempt(operator, sound, tmp_path).forged == frozenset()


def test_a_forger_who_changes_nothing_makes_a_sound_run(run_copy: Path) -> None:
    forge(run_copy)

    assert codes_of(run_copy) == frozenset()


def test_an_operator_that_changes_nothing_is_refused(sound: SoundRun, tmp_path: Path) -> None:
    idle = Operator("idle", "nothing", lambda _: None)

    with pytest.raises(AssertionError, match="changed nothing"):
        attempt(idle, sound, tmp_path)
