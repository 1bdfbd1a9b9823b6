"""Episodes are played again, each alone, in any order and over processes."""

from __future__ import annotations

import random
from pathlib import Path

from evidence_builder import drop_line, edit_line, read_lines, reseal, write_lines

from molforge_eval import layout
from molforge_eval.findings import Finding
from molforge_eval.replay import line_tasks, record_tasks, replay_batch, replay_tasks, verify
from molforge_eval.run_directory import load


def spoil(run: Path) -> None:
    edit_line(run, 5, transition_reward=0.5)
    edit_line(run, 60, molecule="3333")


def ordered(findings: tuple[Finding, ...]) -> list[Finding]:
    return sorted(findings, key=lambda item: (item.where.file or "", item.where.line or 0))


def test_order_and_processes_do_not_change_what_is_found(run_copy: Path) -> None:
    spoil(run_copy)
    run = load(run_copy)
    tasks = [*record_tasks(run), *line_tasks(run)]
    alone = replay_batch(tasks)
    random.Random(3).shuffle(tasks)
    batches = list(replay_tasks(tasks * 3, workers=2))

    assert alone.episodes == 42
    assert alone.differing == 2
    assert sum(batch.episodes for batch in batches) == 3 * 42
    together = ordered(tuple(finding for batch in batches for finding in batch.findings))
    assert together == [finding for finding in ordered(alone.findings) for _ in range(3)]


def test_only_the_first_difference_of_an_episode_is_named(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    first = lines[0]["episode_id"]
    write_lines(run_copy, [{**line, "remaining_budget": 1} if line["episode_id"] == first else line for line in lines])
    found = replay_batch(list(line_tasks(load(run_copy)))).findings

    assert [(item.code, item.where.line, item.where.step) for item in found] == [("REPLAY_STEP_DIFFERS", 1, 1)]


def test_an_episode_is_played_from_its_own_lines_whatever_became_of_the_others(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    kept = lines[-1]["episode_id"]
    write_lines(run_copy, [line for line in lines if line["episode_id"] == kept])
    replayed = replay_batch(list(line_tasks(load(run_copy))))

    assert (replayed.episodes, replayed.differing) == (1, 0)


def test_an_episode_without_its_first_line_is_not_guessed(run_copy: Path) -> None:
    drop_line(run_copy, 1)
    result = verify(run_copy, workers=1)

    assert "EPISODE_HEADLESS" in {item.code for item in result.findings}
    assert not [item for item in result.findings if item.code.startswith("REPLAY_")]


def test_progress_is_told_up_to_the_last_episode(built_run: Path) -> None:
    told: list[tuple[int, int]] = []
    verify(built_run, workers=1, on_progress=lambda done, total: told.append((done, total)))

    assert told[-1] == (42, 42)


def test_a_run_of_the_public_layout_has_nothing_to_play(tmp_path: Path) -> None:
    (tmp_path / layout.MANIFEST).write_bytes(b'{"run_name": "old"}')
    result = verify(tmp_path)

    assert (result.level, result.run_format) == ("E2", 0)
    assert "level E3 is out of its reach" in result.level_reason
    assert "REPLAY_NOTHING" not in {item.code for item in result.findings}


def test_a_sound_run_of_the_public_layout_reaches_what_can_be_known_of_it(old_run: Path) -> None:
    result = verify(old_run)

    assert result.level == "E2"
    assert {item.severity for item in result.findings} == {"info", "warning"}
    assert (result.counts["evaluation_episodes"], result.counts["training_episodes"]) == (6, 0)


def test_hostile_arguments_are_played_as_they_were_recorded(run_copy: Path) -> None:
    edit_line(run_copy, 3, arguments={"slot": ["x"] * 100, "*": {"a": {"b": None}}}, tool="no such tool")
    reseal(run_copy)
    codes = {item.code for item in verify(run_copy, workers=1).findings}

    assert "REPLAY_STEP_DIFFERS" in codes
    assert "CHECK_STOPPED" not in codes


def test_no_module_of_the_working_folder_runs_in_a_worker(run_copy: Path, tmp_path: Path, monkeypatch) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("multiprocessing", "orjson", "pickle", "random", "signal"):
        (trap / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.chdir(trap)
    tasks = list(line_tasks(load(run_copy)))
    played = list(replay_tasks(tasks * (1 + 128 // len(tasks)), workers=2))

    assert sum(batch.episodes for batch in played) > 128
    assert not (tmp_path / "executed").exists()
