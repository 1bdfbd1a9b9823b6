from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from molforge_env.seeding import stream, stream_seed

ROOT = Path(__file__).resolve().parents[3]


def test_equal_names_give_an_equal_stream() -> None:
    assert stream(7, "policy", "easy").random() == stream(7, "policy", "easy").random()


def test_seed_and_every_name_count() -> None:
    seeds = {
        stream_seed(7),
        stream_seed(8),
        stream_seed(7, "a"),
        stream_seed(7, "a", "b"),
        stream_seed(7, "ab"),
        stream_seed(7, "a", 1),
        stream_seed(7, "b", "a"),
        stream_seed(7, "1:a"),
    }

    assert len(seeds) == 8


def test_a_draw_in_one_stream_does_not_move_another() -> None:
    alone = stream(1, "one").random()
    other = stream(1, "other")
    other.random()

    assert stream(1, "one").random() == alone


def test_a_seed_fits_numpy_and_torch() -> None:
    assert all(0 <= stream_seed(seed, "x") < 2**64 for seed in (-5, 0, 2**80))


def test_the_hash_seed_of_the_interpreter_moves_nothing() -> None:
    program = (
        "from molforge_env.suites import *; from molforge_env.policies import play_scripted; "
        "s = resolve_scenario(suite='randomized', seed=3); "
        "print([o.observation_sha256 for o in play_scripted('random_valid', s, 5).outcomes])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "4242")
    }

    assert len(printed) == 1
