from __future__ import annotations

import pytest

from molforge_env.ladder import measure_ladder


def test_the_ladder_goes_up_from_doing_nothing_to_the_ceiling() -> None:
    told: list[str] = []
    ladder = measure_ladder(episodes=40, on_progress=told.append)
    means = {rung.name: rung.mean for rung in ladder.rungs}

    assert told == ["do_nothing", "immediate_submit", "random_valid", "heuristic", "ceiling"] == list(means)
    assert means["do_nothing"] == pytest.approx(0.0933, abs=1e-4)
    assert means["heuristic"] == pytest.approx(0.8773, abs=1e-4)
    assert means["ceiling"] == pytest.approx(0.8913, abs=1e-4)
    assert means["do_nothing"] < means["random_valid"] < 0.2
    assert {rung.name: rung.episodes_per_task for rung in ladder.rungs}["random_valid"] == 40


def test_a_mean_over_more_episodes_starts_with_the_same_ones() -> None:
    one = measure_ladder(episodes=1, seed=3)
    shifted = measure_ladder(episodes=2, seed=2)

    assert one == measure_ladder(episodes=1, seed=3)
    assert one.rungs[2].scores != shifted.rungs[2].scores


def test_the_ladder_of_holdout_variants_has_an_episode_a_variant() -> None:
    ladder = measure_ladder(suite="holdout")
    means = {rung.name: rung.mean for rung in ladder.rungs}

    assert {rung.episodes_per_task for rung in ladder.rungs} == {16}
    assert means["do_nothing"] < means["random_valid"] < means["heuristic"] < means["ceiling"]
    assert means["ceiling"] == pytest.approx(0.8897, abs=1e-4)


def test_a_searched_ladder_equals_the_kept_one() -> None:
    assert measure_ladder(episodes=1, search=True) == measure_ladder(episodes=1)
