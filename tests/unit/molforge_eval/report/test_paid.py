from __future__ import annotations

import polars as pl
import pytest

from molforge_eval.report.curves import Size
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.paid import MOST_DRAWN, put_paid
from molforge_eval.report.paid_chart import paid_chart
from molforge_eval.report.vega_lite import specification_of
from molforge_eval.rollout_table import ROLLOUT_SCHEMA


def log(*episodes: tuple[int | None, float | None, float | None]) -> pl.DataFrame:
    rows = [
        {"line": line, "trainer_step": step, "training_reward": reward, "episode_score": score}
        for line, (step, reward, score) in enumerate(episodes, 1)
    ]
    return pl.DataFrame(rows, schema=dict(ROLLOUT_SCHEMA))


def numbers_of(rollouts: pl.DataFrame):
    book = NumberBook({})
    drawn = put_paid(book, rollouts)
    return drawn, {number.id.removeprefix("sentinel."): number for number in book.numbers}


TWENTY = tuple((step, 0.1 * step, 0.02 * step) for step in range(20))


def test_the_ends_of_the_scale_are_tenths_by_reward() -> None:
    _, numbers = numbers_of(log(*TWENTY))

    assert numbers["most_paid_score"].value == pytest.approx((0.36 + 0.38) / 2)
    assert numbers["least_paid_score"].value == pytest.approx(0.01)


def test_episodes_that_scored_nothing_are_counted_with_what_they_were_paid() -> None:
    _, numbers = numbers_of(log((0, 0.5, 0.0), (0, 0.7, 0.0), (1, 1.0, 0.5), (1, None, 0.0), (1, 0.9, None)))

    assert numbers["unscored"].value == 2
    assert numbers["unscored_reward"].value == pytest.approx(0.6)
    assert numbers["scored_reward"].value == pytest.approx(1.0)
    assert numbers["most_paid_score"].reason == "fewer than 10 training episodes have both numbers"


def test_without_an_episode_every_number_is_unknown() -> None:
    drawn, numbers = numbers_of(log())

    assert drawn == ()
    assert {number.value for number in numbers.values()} == {None}


def test_episodes_of_one_score_and_reward_are_one_point_of_the_third_of_their_steps() -> None:
    steps = (0, 1, 2, 3, 4, 5, None)
    drawn, numbers = numbers_of(log(*((step, 1.001, 0.5) for step in steps)))

    assert drawn == (("between", 0.5, 1.0, 3), ("early", 0.5, 1.0, 2), ("late", 0.5, 1.0, 2))
    assert numbers["points"].value == 3


def test_of_many_points_the_most_frequent_are_drawn_and_the_episodes_counted_whole() -> None:
    drawn, numbers = numbers_of(log((0, 7.0, 0.0), *((0, float(step), 0.0) for step in range(5000))))

    assert len(drawn) == MOST_DRAWN
    assert drawn[0] == ("early", 0.0, 7.0, 2)
    assert (numbers["points"].value, numbers["unscored"].value) == (5000, 5001)


def test_a_part_of_training_that_has_no_episode_has_no_entry_in_the_legend() -> None:
    drawn, _ = numbers_of(log((0, 1.0, 0.5), (1, 1.0, 0.5)))
    tables = specification_of(paid_chart(drawn, size=Size(100, 100)))["datasets"].values()

    assert {row["phase"] for rows in tables for row in rows} == {"first third of training"}
