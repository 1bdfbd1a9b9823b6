"""Whether the laboratory drifts or leaks over a long run.

`python -m benchmarks.soak [SECONDS]` plays random episodes of both suites; the first ones are played again at the end
from their task and seed alone, in the opposite order. Every reward, observation and score has to be equal, and the
memory of the process has to stand still once the chemistry is warm. Exit code 1 when either fails.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

from molforge_env.policies import play_scripted
from molforge_env.suites import SCENARIO_IDS, resolve_scenario

KEPT_EPISODES = 600
GROWTH_LIMIT_MIB = 32.0
_WARM_SHARE = 0.2


def trace_of(number: int) -> tuple[tuple[float, str], ...]:
    """Play episode `number` and keep each reward with the hash of what the player saw, and the final score."""
    scenario_id = SCENARIO_IDS[number % len(SCENARIO_IDS)]
    suite = "randomized" if number % 2 else "official"
    session = play_scripted("random_valid", resolve_scenario(suite=suite, scenario_id=scenario_id, seed=number), number)
    steps = tuple((outcome.reward, outcome.observation_sha256) for outcome in session.outcomes)
    return (*steps, (session.outcomes[-1].scores["final_score"], "final"))


def resident_mib() -> float:
    """Tell the largest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def numbers_until(end: float) -> Iterator[int]:
    """Count up until the clock says so, at least once over both suites and all tasks."""
    number = 0
    while number < 2 * len(SCENARIO_IDS) or time.monotonic() < end:
        yield number
        number += 1


def main(seconds: float) -> int:
    """Play, play again, print, and tell the exit code."""
    start = time.monotonic()
    kept: dict[int, int] = {}
    warm = None
    played = 0
    for number in numbers_until(start + seconds):
        # A hash per episode is kept, not the episode: what grows must be the laboratory's.
        found = hash(trace_of(number))
        if number < KEPT_EPISODES:
            kept[number] = found
        played += 1
        if warm is None and time.monotonic() > start + _WARM_SHARE * seconds:
            warm = resident_mib()
    growth = resident_mib() - (resident_mib() if warm is None else warm)
    differences = [number for number in sorted(kept, reverse=True) if hash(trace_of(number)) != kept[number]]

    print(f"episodes: {played:,} in {time.monotonic() - start:.0f} s")
    print(f"played again: {len(kept):,}, different: {len(differences)}")
    print(f"memory growth after warm-up: {growth:.1f} MiB (limit: {GROWTH_LIMIT_MIB:.0f})")
    return 0 if not differences and growth < GROWTH_LIMIT_MIB else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 120.0))
