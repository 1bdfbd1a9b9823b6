"""The reference policies: players without a model, the rungs of the ladder.

Each plays through the same five tools as a model and sees what a model may see. Only `random_valid` draws, and it
draws from the generator that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from molforge_env.assays import RESTART_COST, TOOL_COSTS
from molforge_env.errors import UsageError
from molforge_env.heuristic import choose_call
from molforge_env.models import SLOTS
from molforge_env.molecules import FRAGMENT_NAMES
from molforge_env.seeding import stream
from molforge_env.suites import ResolvedScenario
from molforge_env.tools import ToolSession
from molforge_env.views import Observation

Call = tuple[str, dict[str, str]]
"""Tool and arguments."""


@dataclass(frozen=True, slots=True)
class ScriptedPolicy:
    """A player without a model."""

    name: str
    act: Callable[[ToolSession, Random], Call]
    """Choose the next call of an open episode."""
    is_random: bool
    """Whether two seeds may play differently."""


def valid_calls(observation: Observation, *, restart_used: bool) -> Iterator[Call]:
    """List every call that the rules would not refuse as invalid now; a reviewer may still veto it.

    Args:
        observation: What is visible in an open episode.
        restart_used: Whether the one restart is gone; a player knows its own earlier calls.
    """
    for slot in SLOTS:
        for fragment in FRAGMENT_NAMES[slot]:
            if fragment != observation.fragment_in(slot):
                yield "edit", {"slot": slot, "fragment": fragment}
    for tool, cost in TOOL_COSTS.items():
        if cost <= observation.remaining_budget:
            yield "run_assay", {"tool_name": tool}
    yield "submit", {}
    if not restart_used and observation.remaining_budget >= RESTART_COST:
        yield "restart", {}
    yield "defer", {}


def _do_nothing(_session: ToolSession, _rng: Random) -> Call:
    return "defer", {}


def _submit(_session: ToolSession, _rng: Random) -> Call:
    return "submit", {}


def _choose_any(session: ToolSession, rng: Random) -> Call:
    return rng.choice(list(valid_calls(session.observation, restart_used=session.episode.restart_used)))


def _choose_by_list(session: ToolSession, _rng: Random) -> Call:
    return choose_call(session.observation)


POLICIES: dict[str, ScriptedPolicy] = {
    policy.name: policy
    for policy in (
        ScriptedPolicy("do_nothing", _do_nothing, is_random=False),
        ScriptedPolicy("immediate_submit", _submit, is_random=False),
        ScriptedPolicy("random_valid", _choose_any, is_random=True),
        ScriptedPolicy("heuristic", _choose_by_list, is_random=False),
    )
}


def find_policy(name: str) -> ScriptedPolicy:
    """Find a policy by name.

    Raises:
        UsageError: No policy has this name; the text lists those that exist.
    """
    try:
        return POLICIES[name]
    except KeyError:
        raise UsageError(
            f"policy {name!r} is not known", where="policy", mend=f"Choose one of {', '.join(POLICIES)}."
        ) from None


def play_scripted(
    name: str, scenario: ResolvedScenario, seed: int = 0, reward_mode: str = "assay_gated"
) -> ToolSession:
    """Play one episode to its end.

    Args:
        name: One of `POLICIES`.
        scenario: The task.
        seed: Seed of the policy's own draws; they depend on seed, policy and task, and on nothing else.
        reward_mode: How steps are paid.

    Returns:
        The session with the finished episode.

    Raises:
        UsageError: The policy or the reward mode is not known.
    """
    policy = find_policy(name)
    session = ToolSession()
    session.start(scenario, reward_mode=reward_mode)
    rng = stream(seed, "scripted", name, scenario.suite, scenario.scenario_id)
    while not session.done:
        session.call(*policy.act(session, rng))
    return session
