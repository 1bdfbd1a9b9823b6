"""The suites: named families of episodes, each resolved to the same plain record.

`official` is the three scenarios, exactly. `randomized` varies budget, horizon and start molecule, and is what training
draws. `holdout` varies start molecule, budget, limits and shift step, and shares no start molecule with the other two.
A resolved scenario is all that is needed to play an episode again, and it is what records keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal, get_args

from molforge_env.episodes import Episode
from molforge_env.errors import UnknownScenarioError, UsageError
from molforge_env.frozen import FrozenModel
from molforge_env.holdout import HoldoutDraw, draw_variant, vary
from molforge_env.models import SLOTS, RewardMode, Slot
from molforge_env.molecules import FRAGMENT_NAMES, molecule_from_code, substitute
from molforge_env.scenarios import SCENARIO_IDS, SCENARIOS, Scenario, find_scenario
from molforge_env.tables import read_table
from molforge_env.transitions import start_episode

__all__ = [  # noqa: RUF022 - in the order of `sorted`, which the surface test holds
    "ResolvedScenario",
    "SCENARIO_IDS",
    "SUITES",
    "ScenarioDraw",
    "SuiteName",
    "TRAINING_SUITES",
    "TrainingSuite",
    "check_trainable",
    "open_episode",
    "resolve_scenario",
    "sequential_draws",
]

TrainingSuite = Literal["official", "randomized"]
SuiteName = Literal["official", "randomized", "holdout"]
SUITES: tuple[SuiteName, ...] = get_args(SuiteName)
TRAINING_SUITES: tuple[TrainingSuite, ...] = get_args(TrainingSuite)
_TABLE = read_table("randomization")


class ScenarioDraw(FrozenModel):
    """What the randomized suite drew for one episode."""

    budget_scale: float
    step_delta: int
    slot: Slot | None
    """Slot of the start molecule that was changed, if one was."""
    fragment: str | None


class ResolvedScenario(FrozenModel):
    """One episode's task with every number settled."""

    suite: SuiteName
    scenario_id: str
    difficulty: Literal["easy", "medium", "hard"]
    target_name: str
    seed: int | None
    max_budget: int
    max_steps: int
    start_molecule: str
    """Code of four digits, one for each slot."""
    draw: ScenarioDraw | HoldoutDraw | None


def resolve_scenario(
    *, suite: str = "official", scenario_id: str | None = None, seed: int | None = None
) -> ResolvedScenario:
    """Settle an episode's task.

    The draws of `randomized` come from `random.Random("molforge-randomized/1:<seed>")`. A given scenario name replaces
    the drawn one and leaves the other draws as they are, so one seed means one variation of each scenario. Those of
    `holdout` come from a stream of seed and scenario.

    Args:
        suite: One of `SUITES`.
        scenario_id: Required by `official`; drawn by the others when absent.
        seed: Required by `randomized` and `holdout`; recorded and otherwise unused by `official`.

    Raises:
        UnknownScenarioError: The suite or the scenario is not known.
        UsageError: What the suite requires is absent.
    """
    if suite not in SUITES:
        raise UnknownScenarioError(
            f"suite {suite!r} is not known", where="suite", mend=f"Choose one of {', '.join(SUITES)}."
        )
    scenario = None if scenario_id is None else find_scenario(scenario_id)
    if suite == "official":
        if scenario is None:
            raise UsageError(
                "the official suite was asked for without a scenario",
                where="scenario_id",
                mend=f"Choose one of {', '.join(SCENARIO_IDS)}.",
            )
        return _resolve_official(scenario, seed)
    if seed is None:
        raise UsageError(f"the {suite} suite was asked for without a seed", where="seed", mend="Give an integer seed.")
    if suite == "holdout":
        return _resolve_holdout(scenario, seed)
    return _draw(Random(f"{_TABLE['stream']}:{seed}"), scenario=scenario, seed=seed)


def _resolve_official(scenario: Scenario, seed: int | None) -> ResolvedScenario:
    return ResolvedScenario(
        suite="official",
        scenario_id=scenario.scenario_id,
        difficulty=scenario.difficulty,
        target_name=scenario.target_name,
        seed=seed,
        max_budget=scenario.budget,
        max_steps=scenario.max_steps,
        start_molecule=scenario.start_molecule,
        draw=None,
    )


def _resolve_holdout(scenario: Scenario | None, seed: int) -> ResolvedScenario:
    task, start_molecule, draw = draw_variant(scenario, seed)
    return ResolvedScenario(
        suite="holdout",
        scenario_id=task.scenario_id,
        difficulty=task.difficulty,
        target_name=task.target_name,
        seed=seed,
        max_budget=round(task.budget * draw.budget_scale),
        max_steps=task.max_steps,
        start_molecule=start_molecule,
        draw=draw,
    )


def check_trainable(suite: str) -> None:
    """Refuse to train on a suite that is kept for evaluation.

    Raises:
        UsageError: It is.
    """
    if suite not in TRAINING_SUITES:
        raise UsageError(
            f"training was asked to play the suite {suite!r}",
            where="suite",
            mend=f"Train on {' or '.join(TRAINING_SUITES)}; what training has played cannot be held out.",
        )


def sequential_draws(seed: str = "molforge") -> Iterator[ResolvedScenario]:
    """Draw endless training resets from one stream, as the public environment does.

    Its constructor consumes the first draw; its first explicit reset is the second.

    Args:
        seed: The seed as text.
    """
    rng = Random(seed)
    while True:
        yield _draw(rng, scenario=None, seed=None)


def _draw(rng: Random, *, scenario: Scenario | None, seed: int | None) -> ResolvedScenario:
    drawn = SCENARIOS[rng.choice(SCENARIO_IDS)]
    task = drawn if scenario is None else scenario
    budget_scale = rng.uniform(*_TABLE["budget_scale"])
    step_delta = rng.choice(_TABLE["step_deltas"])
    molecule = molecule_from_code(task.start_molecule)
    slot: Slot | None = None
    fragment: str | None = None
    if rng.random() < _TABLE["substitution_chance"]:
        changed = rng.choice(SLOTS)
        fragment = rng.choice([name for name in FRAGMENT_NAMES[changed] if name != molecule.fragment_in(changed)])
        molecule = substitute(molecule, changed, fragment)
        slot = changed
    return ResolvedScenario(
        suite="randomized",
        scenario_id=task.scenario_id,
        difficulty=task.difficulty,
        target_name=task.target_name,
        seed=seed,
        max_budget=max(1, round(task.budget * budget_scale)),
        max_steps=max(_TABLE["fewest_steps"], task.max_steps + step_delta),
        start_molecule=molecule.code,
        draw=ScenarioDraw(budget_scale=budget_scale, step_delta=step_delta, slot=slot, fragment=fragment),
    )


def open_episode(
    resolved: ResolvedScenario, *, reward_mode: RewardMode = "assay_gated", noise_seed: int | None = None
) -> Episode:
    """Open the episode of a resolved scenario."""
    scenario = find_scenario(resolved.scenario_id)
    return start_episode(
        vary(scenario, resolved.draw) if isinstance(resolved.draw, HoldoutDraw) else scenario,
        reward_mode=reward_mode,
        max_budget=resolved.max_budget,
        max_steps=resolved.max_steps,
        start_molecule=resolved.start_molecule,
        noise_seed=noise_seed,
    )
