from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from molforge_train.rewards import EnvironmentBrokenError
from molforge_train.stages import check_seeds
from molforge_train.tool_environment import tool_environment

ROW = {"suite": "randomized", "scenario_id": "level_0_easy", "seed": 7, "reward_mode": "assay_gated"}


def test_an_environment_that_does_not_honour_its_seed_is_refused_before_training() -> None:
    draws = count()

    class Forgetful:
        def reset(self, **_row: Any) -> str:
            return f"molecule {next(draws)}"

    with pytest.raises(EnvironmentBrokenError, match="two resets with seed 7 gave two observations"):
        check_seeds(Forgetful, ROW)  # type: ignore[arg-type] # an environment of another kind


def test_the_laboratory_honours_its_seed() -> None:
    check_seeds(tool_environment("compact", lambda: datetime(2026, 1, 1, tzinfo=UTC)), ROW)
