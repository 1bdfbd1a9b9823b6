from __future__ import annotations

import orjson
import pytest

from molforge_eval.ladder import ladder
from molforge_eval.report.comparison_assembly import assemble_comparison
from molforge_eval.report.number_book import NumberBook, words_of
from molforge_eval.report.rivals import enter_runs
from molforge_eval.shipped import template_folder


def test_a_number_that_nobody_described_is_refused() -> None:
    with pytest.raises(KeyError):
        NumberBook({}).put("weather.today", 1.0, "1.0", ("a.json", "/x"))


def test_a_number_stands_once() -> None:
    book = NumberBook({})
    book.put("rule.alpha", 0.05, "0.05", ("eval_plan.json", "/decision"))

    with pytest.raises(ValueError, match=r"rule\.alpha was put down twice"):
        book.put("rule.alpha", 0.05, "0.05", ("eval_plan.json", "/decision"))


def test_an_unknown_number_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="without a reason"):
        NumberBook({}).put("rule.alpha", None, "–", ("eval_plan.json", "/decision"))  # noqa: RUF001 # as printed


def test_words_are_filled_from_the_id() -> None:
    assert words_of("score.level_2_hard.before").name == "level_2_hard, before, sampled"
    assert words_of("score.mean.before").name == "Sampled score before"


def test_every_entry_of_the_words_is_said_of_some_number(evidence_of, old_evidence_of, resumed_evidence, entry) -> None:
    entries = orjson.loads((template_folder() / "number_words.json").read_bytes())
    cases = ("improved", "inconclusive", "regenerated")
    comparison = assemble_comparison(enter_runs([entry(1, 0.3), entry(2, 0.7)]), ladder())
    found = (*map(evidence_of, cases), old_evidence_of("sound"), resumed_evidence, comparison)
    said = {number.formula for evidence in found for number in evidence.numbers}
    unused = [
        pattern
        for pattern, words in entries.items()
        if words["formula"].split("{")[0] not in {formula[: len(words["formula"].split("{")[0])] for formula in said}
    ]

    assert unused == []
