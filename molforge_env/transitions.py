"""The step: an episode and an action in, an episode with one more turn out.

Pure: nothing is drawn, nothing outside is touched. Order and nesting of the sums follow the rules to the bit; rounding
happens once, at the end of the step.
"""

from __future__ import annotations

from typing import NamedTuple

from molforge_env.arithmetic import round4
from molforge_env.effects import apply_action
from molforge_env.episodes import Component, Episode, Governance, RoleCount, Turn
from molforge_env.errors import EpisodeOverError
from molforge_env.governance import review
from molforge_env.grading import grade
from molforge_env.models import REVIEWERS, ROLES, Action, RewardMode
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import Properties, true_properties
from molforge_env.reasoning import score_reasoning
from molforge_env.scenarios import Scenario
from molforge_env.tables import read_table
from molforge_env.validation import find_error

_REWARDS = read_table("rewards")
_CURRICULUM = _REWARDS["curriculum"]
_CURRICULUM_SHARES: dict[str, float] = _CURRICULUM["shares"]
_CURRICULUM_CAP: float = _CURRICULUM["cap"]


def start_episode(
    scenario: Scenario,
    *,
    reward_mode: RewardMode = "assay_gated",
    max_budget: int | None = None,
    max_steps: int | None = None,
    start_molecule: str | None = None,
    noise_seed: int | None = None,
) -> Episode:
    """Open an episode of a scenario.

    Args:
        scenario: The task.
        reward_mode: How steps are paid; scores do not depend on it.
        max_budget: Credits, the scenario's own when absent.
        max_steps: Horizon, the scenario's own when absent.
        start_molecule: Code of the first molecule, the scenario's own when absent.
        noise_seed: Draws the errors of readings anew, for training; the rules' own when absent.
    """
    molecule = molecule_from_code(scenario.start_molecule if start_molecule is None else start_molecule)
    budget = scenario.budget if max_budget is None else max_budget
    return Episode(
        scenario=scenario,
        reward_mode=reward_mode,
        max_budget=budget,
        max_steps=scenario.max_steps if max_steps is None else max_steps,
        molecule=molecule,
        trap=scenario.trap,
        remaining_budget=budget,
        visited=(molecule.code,),
        roles={role: RoleCount() for role in ROLES},
        governance=Governance("ready", REVIEWERS),
        runs={},
        noise_seed=noise_seed,
    )


class _Outcome(NamedTuple):
    """A turn before its end is known."""

    reward: float
    components: list[Component]
    label: str
    summary: str
    error_code: str


def step(episode: Episode, action: Action) -> Episode:
    """Play one action.

    Args:
        episode: An episode that is not over.
        action: Any action that fits the data model.

    Returns:
        The next episode; its last history entry tells what happened.

    Raises:
        EpisodeOverError: The episode is over; nothing has changed.
    """
    if episode.done:
        raise EpisodeOverError(
            f"action {action.action_type!r} came after the end of the episode",
            where=f"scenario {episode.scenario.scenario_id}, step {episode.step}",
            mend="Start another episode with `reset`.",
        )
    episode = episode._replace(step=episode.step + 1)
    error = find_error(episode, action)
    episode, outcome = _refuse(episode, error) if error else _review_and_execute(episode, action)
    return _close_turn(episode, action, outcome)


def _refuse(episode: Episode, error: str) -> tuple[Episode, _Outcome]:
    penalty = _REWARDS["invalid_action"]
    changed = episode._replace(
        invalid_actions=episode.invalid_actions + 1,
        governance=Governance("needs_revision", REVIEWERS),
    )
    components = [Component("invalid_action", penalty)]
    return changed, _Outcome(penalty, components, "[invalid]", f"The action was refused: {error}.", error)


def _review_and_execute(episode: Episode, action: Action) -> tuple[Episode, _Outcome]:
    before = true_properties(episode.molecule, trap=episode.trap, shift=episode.shift)
    verdict = review(episode, action, before)
    components = list(verdict.components)
    reward = 0.0
    for component in components:
        reward += component.value
    episode = episode._replace(
        governance=verdict.governance,
        messages=verdict.messages,
        roles=verdict.roles,
        objection_messages=verdict.objection_messages,
    )
    if verdict.governance.vetoes:
        names = " and ".join(verdict.governance.vetoes)
        return episode, _Outcome(reward, components, "[policy_veto]", f"The action was blocked by {names}.", "")
    return _execute(episode, action, before, reward, components)


def _execute(
    episode: Episode, action: Action, before: Properties, reward: float, components: list[Component]
) -> tuple[Episode, _Outcome]:
    episode, effect = apply_action(episode, action, before)
    reward += effect.reward
    components += effect.components
    if episode.done:
        return episode, _Outcome(reward, components, "[submitted]", effect.summary, "")
    reasoning = score_reasoning(episode, action)
    reward += reasoning
    if reasoning != 0:
        components.append(Component("reasoning_grounding", round4(reasoning)))
    return episode, _Outcome(reward, components, f"[decision_{episode.step:02d}]", effect.summary, "")


def _close_turn(episode: Episode, action: Action, outcome: _Outcome) -> Episode:
    reward, components, label, summary, error_code = outcome
    path = _extend_path(episode.state_path, label)
    done = episode.done
    if not done and episode.step >= episode.max_steps:
        done, label = True, "[terminated:max_steps]"
        reward += _REWARDS["step_limit"]
        components.append(Component("step_limit", _REWARDS["step_limit"]))
        summary += " The step limit is reached."
    if not done and episode.remaining_budget <= 0:
        done, label = True, "[terminated:budget]"
        reward += _REWARDS["budget_exhausted"]
        components.append(Component("budget_exhausted", _REWARDS["budget_exhausted"]))
        summary += " The budget is spent."
    if done and not episode.submitted and episode.reward_mode == "curriculum":
        reward += _pay_curriculum(episode, components)
    reward = round4(reward)
    turn = Turn(
        episode.step,
        action,
        reward,
        done,
        episode.molecule.code,
        label,
        summary,
        episode.governance,
        error_code,
        tuple(components),
    )
    return episode._replace(
        done=done,
        reward_total=round4(episode.reward_total + reward),
        history=(*episode.history, turn),
        state_path=_extend_path(path, label),
    )


def _extend_path(path: tuple[str, ...], label: str) -> tuple[str, ...]:
    return path if path[-1] == label else (*path, label)


def _pay_curriculum(episode: Episode, components: list[Component]) -> float:
    # The history lacks the turn that is being closed, as the rules want it.
    scores = grade(episode)
    progress = 0.0
    for name, share in _CURRICULUM_SHARES.items():
        progress += share * scores[name]
    progress = min(progress, _CURRICULUM_CAP)
    components.append(Component("curriculum_terminal_progress", round4(progress)))
    if (
        scores["evidence_score"] >= _CURRICULUM["missed_evidence"]
        and scores["constraint_margin_score"] >= _CURRICULUM["missed_margin"]
        and scores["candidate_score"] >= episode.scenario.baseline
    ):
        penalty: float = _CURRICULUM["missed_nomination"]
        components.append(Component("curriculum_missed_nomination", penalty))
        return progress + penalty
    return progress
