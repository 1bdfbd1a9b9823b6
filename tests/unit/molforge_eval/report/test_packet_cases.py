"""Published faults that are a matter of the packet: what it says of each."""

from __future__ import annotations

import dataclasses
import re
from html import unescape

import polars as pl
import pytest
from drawn_once import draw_once
from training_episodes import with_episodes

from molforge_eval.report.assembly import assemble_evidence
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.first_page import write_words
from molforge_eval.report.paper import write_markup
from molforge_eval.report.series import MOST_POINTS

RISING = [0.2 + 0.8 * step / 29 + 0.01 * (step % 3) for step in range(30)]
PEAKED = [0.62 + 0.1 * step for step in range(15)] + [2.09] + [1.9 - 0.12 * step for step in range(14)]


def text_of(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", markup)).split())


@pytest.fixture(scope="module")
def learned(check, plan, random_evaluation, rescored):
    """Evidence of a run with these training rewards, a row a step, and this score after training."""

    def make(rewards: list[float], after: float) -> Evidence:
        scores = {("sampled", task, seed): after for part in plan.parts for task in part.tasks for seed in part.seeds}
        before = rescored(random_evaluation, {key: 0.5 + 0.01 * (key[2] % 3) for key in scores})
        checked = check(before, rescored(before, scores), plan)
        log = checked.run.trainer_log
        count = len(rewards)
        known = {
            "type": ["train"] * count,
            "step": list(range(1, count + 1)),
            "reward": rewards,
            "line": range(1, count + 1),
        }
        missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in log.schema.items() if name not in known]
        columns = {name: values for name, values in known.items() if name in log.columns}
        rows = pl.DataFrame(columns, schema_overrides={name: log.schema[name] for name in columns})
        run = dataclasses.replace(checked.run, trainer_log=rows.with_columns(missing).select(log.columns))
        return assemble_evidence(with_episodes(checked._replace(run=run), rewards, [0.4] * count))

    return make


def test_a_reward_that_rose_stands_beside_the_score_that_fell_and_the_score_decides(learned) -> None:
    evidence = learned(RISING, 0.2)
    words = write_words(evidence, logs_left_out=False)

    assert evidence.verdict.outcome == "regressed"
    assert evidence.sentinel.evaluation_fell
    assert "regressedthestrictscorefell,\N{MINUS SIGN}0.31" in words
    assert "thetrainingrewardrosewhilethestrictscoreofthesameepisodesshowsnorise" in words


def test_a_peak_is_called_a_peak_and_is_never_the_headline(learned) -> None:
    evidence = learned(PEAKED, 0.5)
    words = write_words(evidence, logs_left_out=False)
    shown = text_of(write_markup(evidence, draw_once(evidence)).markup)

    assert "2.09" not in words
    assert "The peak, 2.09, is a single point." in shown
    assert evidence.number("curve.reward.first").value == pytest.approx(0.72)
    assert evidence.number("curve.reward.last").value == pytest.approx(0.46)
    assert evidence.number("curve.reward.slope_low").value <= evidence.number("curve.reward.slope").value
    assert all("peak" in shown[max(0, found.start() - 60) : found.end()] for found in re.finditer(r"2\.09", shown))


def test_a_long_log_is_thinned_and_the_packet_says_so(learned) -> None:
    count = 20_000
    evidence = learned([0.2 + step / count for step in range(count)], 0.5)
    curve = next(note.curve for note in evidence.curves if note.name == "reward")
    shown = text_of(write_markup(evidence, draw_once(evidence)).markup)

    assert len(curve.points) <= MOST_POINTS + 1
    assert evidence.number("curve.reward.points").value == count
    assert "Long curves are drawn from every n-th point; numbers are taken from all of them." in shown
