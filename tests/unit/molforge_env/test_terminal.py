from __future__ import annotations

import pytest
from click.testing import CliRunner

from molforge_env.cli import cli

BEST_OF_HARD = """
restart
assay assay_toxicity
assay estimate_synthesizability
run_assay dock_target
submit
"""


@pytest.fixture
def typed():
    def run(lines: str, *arguments: str) -> str:
        return CliRunner().invoke(cli, ["play", *arguments], input=lines).output

    return run


def test_a_person_can_play_an_episode_to_its_end(typed) -> None:
    text = typed(BEST_OF_HARD.lstrip(), "level_2_hard")

    assert "final score 0.8883" in text
    assert "best attainable 0.9032" in text
    assert "true properties" in text


def test_a_wrong_line_is_explained_and_costs_nothing(typed) -> None:
    text = typed("edit tail morpholine\nstir\nhelp\nquit\n")

    assert "slot 'tail' is not known" in text
    assert "tool 'stir' is not known" in text
    assert text.count("edit SLOT FRAGMENT") == 2
    assert "step: 1/7" not in text
    assert "unfinished" in text


def test_the_ceiling_of_a_variant_is_told_too(typed) -> None:
    text = typed("defer\n" * 12, "level_0_easy", "--suite", "randomized", "--seed", "4")

    assert "final score" in text
    assert "best attainable 0.8770" in text
