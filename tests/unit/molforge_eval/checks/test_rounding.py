"""When a recorded number is the computed one."""

from __future__ import annotations

import pytest

from molforge_eval.checks.rounding import agrees, mean_of


@pytest.mark.parametrize(
    ("recorded", "computed", "same"),
    [
        (0.5123, 0.51234, True),
        (0.5123, 0.51225, True),
        (0.5123, 0.51236, False),
        (1.02, 1.02004, True),
        (1.02, -0.003, False),
        (0.5, 0.51, False),
        (1 / 3, 1 / 3 + 1e-12, True),
        (1 / 3, 1 / 3 + 1e-6, False),
        (None, None, True),
        (None, 0.0, False),
        (0.0, None, False),
        (1e-9, 0.0, True),
        (250.0, 250.1, False),
    ],
)
def test_a_number_may_be_rounded_and_nothing_more(recorded: float | None, computed: float | None, same: bool) -> None:
    assert agrees(recorded, computed) is same


def test_a_mean_of_nothing_is_nothing() -> None:
    assert mean_of([]) is None
    assert mean_of([1.0, 2.0]) == 1.5
