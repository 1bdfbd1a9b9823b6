from __future__ import annotations

import pytest

from molforge_eval.report.action_shift import put_shift
from molforge_eval.report.evidence import PhaseRow
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.series import action_shares


def phase(name: str, *actions: str) -> PhaseRow:
    return PhaseRow(phase=name, label=name, actions=action_shares(name, actions))


def numbers_of(*phases: PhaseRow):
    book = NumberBook({})
    return put_shift(book, phases), {number.id: number.value for number in book.numbers}


def test_the_actions_that_moved_most_are_named_with_their_shares() -> None:
    shift, numbers = numbers_of(
        phase("before", "edit", "edit", "run_assay", "run_assay"),
        phase("early", "defer"),
        phase("after", "edit", "edit", "edit", "submit", "submit"),
    )

    assert (shift.grew, shift.shrank) == ("submit", "run_assay")
    assert numbers == pytest.approx(
        {"mix.grew.before": 0.0, "mix.grew.after": 0.4, "mix.shrank.before": 0.5, "mix.shrank.after": 0.0}
    )


def test_the_same_mix_names_no_action() -> None:
    shift, numbers = numbers_of(phase("before", "edit", "submit"), phase("after", "submit", "edit"))

    assert (shift.grew, shift.shrank) == (None, None)
    assert set(numbers.values()) == {None}


def test_one_side_alone_is_no_shift() -> None:
    assert numbers_of(phase("after", "edit")) == (None, {})


def test_a_side_without_a_call_is_no_shift() -> None:
    assert numbers_of(phase("before"), phase("after", "edit")) == (None, {})
    assert numbers_of(phase("before", "edit"), phase("after")) == (None, {})
