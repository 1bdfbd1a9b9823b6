"""The tool session: one player, one episode, five tools.

A call is checked against its schema first; a refusal leaves the laboratory as it was. A checked call becomes an action
with the review board's reasons and messages, and is stepped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from molforge_env.episodes import Episode
from molforge_env.errors import EpisodeOverError, ToolArgumentError, UsageError
from molforge_env.grading import grade
from molforge_env.interface import TOOL_NAMES, ObservationLength, after_step_text, default_rationale, observation_text
from molforge_env.laboratory import Laboratory
from molforge_env.models import (
    RATIONALE_LIMIT,
    REWARD_MODES,
    SLOTS,
    TOOLS,
    Action,
    ActionType,
    RewardMode,
    Role,
    Slot,
    ToolName,
)
from molforge_env.review_board import ToolIntent, compose_action
from molforge_env.suites import ResolvedScenario, resolve_scenario
from molforge_env.tool_schemas import OPTIONAL_ARGUMENTS, TOOL_ARGUMENTS
from molforge_env.views import Observation, digest_of


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What one tool call did."""

    text: str
    """What the model reads."""
    reward: float
    """Reward of the transition."""
    tool_reward: float
    """Final score when the episode is over, else the reward of the transition."""
    done: bool
    error_code: str
    governance_status: str
    vetoes: tuple[Role, ...]
    objections: tuple[Role, ...]
    approvals: tuple[Role, ...]
    components: tuple[tuple[str, float], ...]
    molecule: str
    """Code after the step."""
    remaining_budget: int
    step_index: int
    summary: str
    scores: Mapping[str, float]
    """The fourteen grader scores when the episode is over, else empty."""
    action: Action
    """The action as it was stepped, messages and reasons included."""
    observation_sha256: str


class Moves:
    """Moves that were played: a step is pure, so the same call in the same state is played once and then looked up.

    It holds every state of the episodes that were played with it, and is meant for a bounded number of them.
    """

    __slots__ = ("_calls", "_openings")

    def __init__(self) -> None:
        """Start with none."""
        self._openings: dict[tuple[ResolvedScenario, RewardMode, str], tuple[Episode, Observation, str]] = {}
        # A state is known by its identity; it is held here as an answer, so no other object can take that.
        self._calls: dict[tuple[int, str, ToolIntent], tuple[Episode, Observation, ToolOutcome]] = {}

    def start(
        self, laboratory: Laboratory, scenario: ResolvedScenario, reward_mode: RewardMode, length: ObservationLength
    ) -> str:
        """Open an episode and return its opening text."""
        key = (scenario, reward_mode, length)
        found = self._openings.get(key)
        if found is None:
            text = observation_text(laboratory.start(scenario, reward_mode=reward_mode), length)
            self._openings[key] = (laboratory.episode, laboratory.observation, text)
            return text
        episode, observation, text = found
        laboratory.take_up(scenario, episode, observation)
        return text

    def call(self, laboratory: Laboratory, intent: ToolIntent, length: ObservationLength) -> ToolOutcome:
        """Play a call in the state of a laboratory, whose episode is not over and was opened here."""
        key = (id(laboratory.episode), length, intent)
        found = self._calls.get(key)
        if found is None:
            outcome = _play(laboratory, intent, length)
            self._calls[key] = (laboratory.episode, laboratory.observation, outcome)
            return outcome
        episode, observation, outcome = found
        laboratory.take_up(laboratory.scenario, episode, observation)
        return outcome


def _play(laboratory: Laboratory, intent: ToolIntent, length: ObservationLength) -> ToolOutcome:
    action = compose_action(laboratory.observation, intent)
    turn = laboratory.step(action)
    episode = laboratory.episode
    observation = laboratory.observation
    scores = grade(episode) if turn.done else {}
    return ToolOutcome(
        text=after_step_text(observation, length),
        reward=turn.reward,
        tool_reward=scores["final_score"] if turn.done else turn.reward,
        done=turn.done,
        error_code=turn.error_code,
        governance_status=turn.governance.status,
        vetoes=turn.governance.vetoes,
        objections=turn.governance.objections,
        approvals=turn.governance.approvals,
        components=tuple((part.name, part.value) for part in turn.components),
        molecule=turn.molecule,
        remaining_budget=episode.remaining_budget,
        step_index=episode.step,
        summary=turn.summary,
        scores=scores,
        action=action,
        observation_sha256=digest_of(observation),
    )


class ToolSession:
    """Plays episodes through the five tools.

    Args:
        observation_length: How long the texts for the model are.
        moves: Where moves are looked up and kept; each is played anew when absent.
    """

    __slots__ = ("_laboratory", "_length", "_moves", "_outcomes")

    def __init__(self, *, observation_length: ObservationLength = "full", moves: Moves | None = None) -> None:
        self._length: ObservationLength = observation_length
        self._laboratory = Laboratory()
        self._moves = moves
        self._outcomes: list[ToolOutcome] = []

    def reset(
        self,
        *,
        suite: str = "official",
        scenario_id: str | None = None,
        seed: int | None = None,
        reward_mode: str = "assay_gated",
        noise_seed: int | None = None,
    ) -> str:
        """Start an episode by name; everything about the one before is forgotten.

        Returns:
            The text that the model reads first.

        Raises:
            UnknownScenarioError: The suite or the scenario is not known.
            UsageError: The suite needs a seed or a scenario, or the reward mode is not known.
        """
        scenario = resolve_scenario(suite=suite, scenario_id=scenario_id, seed=seed)
        return self.start(scenario, reward_mode=reward_mode, noise_seed=noise_seed)

    def start(
        self, scenario: ResolvedScenario, *, reward_mode: str = "assay_gated", noise_seed: int | None = None
    ) -> str:
        """Start an episode from its resolved scenario.

        Returns:
            The text that the model reads first.

        Raises:
            UsageError: The reward mode is not known.
        """
        if reward_mode not in REWARD_MODES:
            raise UsageError(
                f"reward mode {reward_mode!r} is not known",
                where="reward_mode",
                mend=f"Choose one of {', '.join(REWARD_MODES)}.",
            )
        if noise_seed is not None:
            # Moves are shared by episodes whose readings err alike.
            self._moves = None
        self._outcomes = []
        if self._moves is not None:
            return self._moves.start(self._laboratory, scenario, reward_mode, self._length)
        observation = self._laboratory.start(scenario, reward_mode=reward_mode, noise_seed=noise_seed)
        return observation_text(observation, self._length)

    def call(self, tool: str, arguments: Mapping[str, object]) -> ToolOutcome:
        """Call a tool.

        Args:
            tool: One of the five.
            arguments: By name; `rationale` may be left out.

        Raises:
            ToolArgumentError: Unknown tool, or arguments outside its schema; the laboratory has not moved.
            EpisodeOverError: The episode is over; nothing has changed.
            UsageError: No episode was started.
        """
        intent = read_intent(tool, arguments, observation_length=self._length)
        if self.episode.done:
            raise EpisodeOverError(
                f"tool {tool!r} was called after the end of the episode",
                where=f"scenario {self.scenario.scenario_id}, step {self.step_count}",
                mend="Start another episode with `reset`.",
            )
        if self._moves is None:
            outcome = _play(self._laboratory, intent, self._length)
        else:
            outcome = self._moves.call(self._laboratory, intent, self._length)
        self._outcomes.append(outcome)
        return outcome

    @property
    def observation_length(self) -> ObservationLength:
        """How long the texts for the model are."""
        return self._length

    @property
    def scenario(self) -> ResolvedScenario:
        """The task of the current episode."""
        return self._laboratory.scenario

    @property
    def observation(self) -> Observation:
        """What is visible now."""
        return self._laboratory.observation

    @property
    def episode(self) -> Episode:
        """The current episode as the rules hold it, hidden flags included."""
        return self._laboratory.episode

    @property
    def reward_mode(self) -> RewardMode:
        """How steps are paid."""
        return self.episode.reward_mode

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.episode.done

    @property
    def step_count(self) -> int:
        """Steps that were played."""
        return self.episode.step

    @property
    def scores(self) -> dict[str, float]:
        """The fourteen grader scores when the episode is over, else empty."""
        return grade(self.episode) if self.episode.done else {}

    @property
    def outcomes(self) -> tuple[ToolOutcome, ...]:
        """What the calls of this episode did, in order."""
        return tuple(self._outcomes)


def read_intent(
    tool: str, arguments: Mapping[str, object], *, observation_length: ObservationLength = "full"
) -> ToolIntent:
    """Check a tool call against the tool's schema.

    Raises:
        ToolArgumentError: Unknown tool, missing or unknown argument, wrong type, unknown slot or assay, long rationale.
    """
    if tool not in TOOL_ARGUMENTS:
        raise ToolArgumentError(
            f"tool {tool!r} is not known", where="tool call", mend=f"Call one of {', '.join(TOOL_NAMES)}."
        )
    values = {name: _read_text(tool, name, arguments) for name in TOOL_ARGUMENTS[tool] if name in arguments}
    for name in arguments:
        if name not in values:
            raise _refuse(tool, str(name), "is not an argument of this tool", TOOL_ARGUMENTS[tool])
    for name in TOOL_ARGUMENTS[tool]:
        if name not in values and name not in OPTIONAL_ARGUMENTS:
            raise _refuse(tool, name, "is missing", TOOL_ARGUMENTS[tool])
    rationale = values.get("rationale", default_rationale(observation_length))
    if len(rationale) > RATIONALE_LIMIT:
        raise ToolArgumentError(
            f"rationale has {len(rationale)} characters",
            where=f"tool {tool}",
            mend=f"Give at most {RATIONALE_LIMIT} characters.",
        )
    _check_choice(tool, "slot", values, SLOTS)
    _check_choice(tool, "tool_name", values, TOOLS)
    return ToolIntent(
        action_type=cast("ActionType", tool),
        rationale=rationale,
        slot=cast("Slot | None", values.get("slot")),
        fragment=values.get("fragment"),
        tool_name=cast("ToolName | None", values.get("tool_name")),
    )


def _read_text(tool: str, name: str, arguments: Mapping[str, object]) -> str:
    value = arguments[name]
    if not isinstance(value, str):
        raise ToolArgumentError(
            f"argument {name!r} is {type(value).__name__}, not text", where=f"tool {tool}", mend="Give text."
        )
    return value


def _refuse(tool: str, name: str, why: str, known: tuple[str, ...]) -> ToolArgumentError:
    return ToolArgumentError(
        f"argument {name!r} {why}", where=f"tool {tool}", mend=f"Give the arguments {', '.join(known)}."
    )


def _check_choice(tool: str, name: str, values: Mapping[str, str], choices: tuple[str, ...]) -> None:
    if name in values and values[name] not in choices:
        raise ToolArgumentError(
            f"{name} {values[name]!r} is not known", where=f"tool {tool}", mend=f"Choose one of {', '.join(choices)}."
        )
