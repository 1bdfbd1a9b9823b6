"""Short ways to an episode, for the tests of the laboratory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from molforge_env.episodes import Episode, Turn
from molforge_env.models import Action
from molforge_env.scenarios import SCENARIOS
from molforge_env.transitions import start_episode, step

EASY, MEDIUM, HARD = SCENARIOS.values()


@pytest.fixture
def golden() -> Path:
    return Path(__file__).resolve().parents[2] / "data" / "golden"


@pytest.fixture
def opened() -> Callable[..., Episode]:
    """Open an episode: `opened("hard", start_molecule="2003", trap=False)`."""

    def open_it(difficulty: str = "easy", *, trap: bool | None = None, **options: object) -> Episode:
        scenario = {"easy": EASY, "medium": MEDIUM, "hard": HARD}[difficulty]
        episode = start_episode(scenario, **options)
        return episode if trap is None else episode._replace(trap=trap)

    return open_it


@pytest.fixture
def action() -> Callable[..., Action]:
    """Make an action: `action("edit", toxicologist="approval", slot="hinge", fragment="azaindole")`."""

    def make(kind: str, *, say: dict[str, str] | None = None, **fields: object) -> Action:
        actor = "assay_planner" if kind == "run_assay" else "lead_chemist"
        if kind == "edit":
            fields.setdefault("edit_type", "substitute")
        messages = [{"sender": sender, "message_type": text} for sender, text in (say or {}).items()]
        return Action.model_validate({"action_type": kind, "acting_role": actor, "messages": messages, **fields})

    return make


@pytest.fixture
def play(action: Callable[..., Action]) -> Callable[..., tuple[Episode, Turn]]:
    """Play one action on an episode and give the next episode with its turn."""

    def play_it(episode: Episode, kind: str, **fields: object) -> tuple[Episode, Turn]:
        following = step(episode, action(kind, **fields))
        return following, following.history[-1]

    return play_it
