"""The laboratory as TRL wants it: a class whose public methods are the five tools and `reset`, and nothing else.

TRL builds an instance for each place in a batch and uses it again, so `reset` clears everything. It shows no error to
the model but the text of an exception, and does not say when an episode is over; both are kept here for the records.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, cast

from molforge_env.errors import EpisodeOverError, ToolArgumentError
from molforge_env.interface import TOOL_ARGUMENTS, ObservationLength, tool_docstring
from molforge_env.models import RewardMode
from molforge_env.suites import ResolvedScenario, check_trainable
from molforge_env.tool_schemas import OPTIONAL_ARGUMENTS, default_rationale
from molforge_env.tools import ToolOutcome, ToolSession
from molforge_eval.calls import BROKEN_CODE, recordable_arguments
from molforge_eval.training_reward import AFTER_END_CODE, REFUSED_CODE, JudgedCall


class Call(NamedTuple):
    """One call that reached the laboratory."""

    tool: str
    arguments: Mapping[str, Any]
    """As recorded: calling again with them does the same."""
    outcome: ToolOutcome | None
    """`None` where nothing was stepped."""
    error_code: str
    moment: datetime

    @property
    def status(self) -> Literal["ok", "invalid", "env_error"]:
        """Whether the call counts against the model, against the environment, or against nobody."""
        if self.error_code == BROKEN_CODE:
            return "env_error"
        return "invalid" if self.error_code else "ok"

    @property
    def judged(self) -> JudgedCall:
        """What the reward formula takes."""
        outcome = self.outcome
        if outcome is None:
            return JudgedCall(self.status, self.error_code, None)
        assay = None
        if outcome.action.action_type == "run_assay" and outcome.governance_status == "executed":
            assay = (str(outcome.action.tool_name), outcome.molecule)
        return JudgedCall(self.status, self.error_code, outcome.governance_status, outcome.reward, assay)


@dataclass
class Played:
    """One episode as an instance played it."""

    scenario: ResolvedScenario
    seed: int
    reward_mode: RewardMode
    started_at: datetime
    calls: list[Call] = field(default_factory=list)


class PlayedEnvironment(Protocol):
    """What reward functions may read of an instance."""

    @property
    def played(self) -> Played:
        """The current episode."""


def tool_environment(
    length: ObservationLength,
    clock: Callable[[], datetime],
    *,
    mode: Callable[[], RewardMode] | None = None,
    has_noise: bool = False,
) -> type[PlayedEnvironment]:
    """Make the environment class for one length of texts; TRL takes it as its `environment_factory`.

    Args:
        length: Length of observations and of the tools' descriptions.
        clock: Tells when a call was made.
        mode: Tells how steps are paid now, in place of the row; for a run in phases.
        has_noise: Readings err by the seed of the row, in place of the errors of the rules.
    """

    class ToolEnvironment:
        def __init__(self) -> None:
            self._session = ToolSession(observation_length=length)
            self._played: Played | None = None

        def reset(self, *, suite: str, scenario_id: str, seed: int, reward_mode: str, **_row: Any) -> str:
            """Start the episode of a dataset row; what was played before is forgotten.

            Args:
                suite: Suite of the scenario.
                scenario_id: Task within the suite.
                seed: Seed of the episode.
                reward_mode: How steps are paid.
                **_row: Other columns of the row.

            Returns:
                Text that is appended to the prompt.

            Raises:
                UsageError: The suite is kept for evaluation.
            """
            check_trainable(suite)
            text = self._session.reset(
                suite=suite,
                scenario_id=scenario_id,
                seed=seed,
                reward_mode=reward_mode if mode is None else mode(),
                noise_seed=seed if has_noise else None,
            )
            self._played = Played(self._session.scenario, seed, self._session.reward_mode, clock())
            return text

        # A property is no plain function, so TRL does not take it for a tool.
        @property
        def played(self) -> Played:
            """The current episode."""
            return cast("Played", self._played)

        def _call(self, tool: str, arguments: dict[str, Any]) -> str:
            outcome, error_code = None, BROKEN_CODE
            sent = recordable_arguments(arguments)
            try:
                outcome = self._session.call(tool, sent)
                error_code = outcome.error_code
            except ToolArgumentError:
                error_code = REFUSED_CODE
                raise
            except EpisodeOverError:
                error_code = AFTER_END_CODE
                raise
            finally:
                # Whatever else is raised is the laboratory's fault and keeps its own code; TRL swallows every error.
                self.played.calls.append(Call(tool, sent, outcome, error_code, clock()))
            return outcome.text

        edit = _tool_method("edit", length)
        run_assay = _tool_method("run_assay", length)
        submit = _tool_method("submit", length)
        restart = _tool_method("restart", length)
        defer = _tool_method("defer", length)

    return ToolEnvironment


def _tool_method(tool: str, length: ObservationLength) -> Callable[..., str]:
    # TRL reads signature, type hints and docstring and calls by name. The signature is only shown, so that a wrong
    # argument meets the tool's schema, and its message, as it does in evaluation.
    def method(self: Any, /, **arguments: Any) -> str:
        return cast("str", self._call(tool, arguments))

    names = TOOL_ARGUMENTS[tool]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shown = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for name in names:
        default = default_rationale(length) if name in OPTIONAL_ARGUMENTS else inspect.Parameter.empty
        shown.append(inspect.Parameter(name, kind, default=default, annotation=str))
    method.__name__ = method.__qualname__ = tool
    # When a model sends a list in place of named arguments, Python's own words reach it, and they name the method: as
    # `edit()`, which is what the evaluator says too.
    method.__module__ = "builtins"
    method.__doc__ = tool_docstring(tool, length)
    method.__annotations__ = {**dict.fromkeys(names, str), "return": str}
    method.__signature__ = inspect.Signature(shown, return_annotation=str)  # type: ignore[attr-defined] # read by inspect
    return method
