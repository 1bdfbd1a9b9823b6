"""How fast the laboratory plays on one core.

`python -m benchmarks.laboratory` plays recorded-like episodes and prints two speeds: steps with a full observation,
and steps of the rules alone. Both play the same actions of the random policy over the three tasks, chemistry warm.
The best of several rounds counts, because other work on the machine only ever makes a round slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from molforge_env.models import Action
from molforge_env.molecules import MOLECULES
from molforge_env.oracles import true_properties
from molforge_env.policies import play_scripted
from molforge_env.suites import SCENARIO_IDS, ResolvedScenario, open_episode, resolve_scenario
from molforge_env.transitions import step
from molforge_env.views import observe

WANTED_FULL = 5_000
WANTED_RULES = 10_000
_EPISODES = 60
_ROUNDS = 7

Recording = tuple[ResolvedScenario, tuple[Action, ...]]


def record_actions() -> list[Recording]:
    """Play random episodes once and keep their actions."""
    recordings = []
    for index in range(_EPISODES):
        scenario = resolve_scenario(scenario_id=SCENARIO_IDS[index % len(SCENARIO_IDS)])
        session = play_scripted("random_valid", scenario, index)
        recordings.append((scenario, tuple(outcome.action for outcome in session.outcomes)))
    return recordings


def play_rules(recordings: Sequence[Recording]) -> int:
    """Step through the recorded actions without looking; returns the number of steps."""
    steps = 0
    for scenario, actions in recordings:
        episode = open_episode(scenario)
        for action in actions:
            episode = step(episode, action)
        steps += len(actions)
    return steps


def play_observed(recordings: Sequence[Recording]) -> int:
    """Step through the recorded actions and build the full observation after each; returns the number of steps."""
    steps = 0
    for scenario, actions in recordings:
        episode = open_episode(scenario)
        observe(episode)
        for action in actions:
            episode = step(episode, action)
            observe(episode)
        steps += len(actions)
    return steps


def measure(play: Callable[[Sequence[Recording]], int], recordings: Sequence[Recording]) -> float:
    """Measure the best speed of several rounds, in steps a second."""
    best = 0.0
    for _ in range(_ROUNDS):
        # An action keeps its own map once made; fresh copies make each round do the work of a first play.
        fresh = [
            (scenario, tuple(action.model_copy(deep=True) for action in actions)) for scenario, actions in recordings
        ]
        start = time.process_time()
        steps = play(fresh)
        best = max(best, steps / (time.process_time() - start))
    return best


def main() -> None:
    """Print both speeds beside what is wanted."""
    for molecule in MOLECULES.values():
        for trap in (False, True):
            for shift in (False, True):
                true_properties(molecule, trap=trap, shift=shift)
    recordings = record_actions()
    full = measure(play_observed, recordings)
    rules = measure(play_rules, recordings)
    print(f"full-observation steps per second: {full:,.0f} (wanted: at least {WANTED_FULL:,})")
    print(f"rules-only steps per second: {rules:,.0f} (wanted: at least {WANTED_RULES:,})")


if __name__ == "__main__":
    main()
