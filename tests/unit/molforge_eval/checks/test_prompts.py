"""An episode stands where its prompt was due, and equal scenarios are opened with equal words."""

from __future__ import annotations

from pathlib import Path

from evidence_builder import edit_json, read_lines, reseal, write_lines

from molforge_eval import layout
from molforge_eval.validate import validate


def codes_of(run: Path) -> dict[str, list[str | None]]:
    reseal(run)
    found: dict[str, list[str | None]] = {}
    for finding in validate(run).findings:
        found.setdefault(finding.code, []).append(finding.where.episode)
    return found


def test_groups_that_changed_places_are_named_episode_by_episode(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    for line in lines:
        step = {0: 3, 3: 0}.get(line["trainer_step"])
        if step is not None and "-prompt00-" in line["episode_id"]:
            line["trainer_step"] = step
            line["episode_id"] = f"step{step:05d}-{line['episode_id'].partition('-')[2]}"
    write_lines(run_copy, sorted(lines, key=lambda line: line["trainer_step"]))
    found = codes_of(run_copy)

    assert found["PROMPT_UNPLANNED"] == [
        f"step{step:05d}-prompt00-{generation:02d}" for step in (0, 3) for generation in range(3)
    ]


def test_a_run_that_went_on_is_held_to_its_prompts_and_not_to_their_order(run_copy: Path) -> None:
    rows = read_lines(run_copy, layout.TRAINER_LOG)
    write_lines(run_copy, [*rows[:2], {**rows[1], "type": "resume"}, *rows[2:]], layout.TRAINER_LOG)
    lines = read_lines(run_copy)
    places = {"prompt00": "prompt01", "prompt01": "prompt00"}
    for line in lines:
        step, prompt, generation = line["episode_id"].split("-")
        line["episode_id"] = "-".join((step, places[prompt], generation))
    write_lines(run_copy, lines)

    assert "PROMPT_UNPLANNED" not in codes_of(run_copy)

    for line in lines:
        line["seed"] += 1
    write_lines(run_copy, lines)

    assert len(codes_of(run_copy)["PROMPT_UNPLANNED"]) == 24


def test_more_prompts_than_can_be_listed_are_named_and_not_listed(run_copy: Path) -> None:
    edit_json(run_copy, layout.MANIFEST, lambda value: value["configuration"].update(dataset_size=2**62))

    assert codes_of(run_copy) == {"PROMPT_UNPLANNED": [None]}


def test_marks_of_a_chat_template_are_no_hint(run_copy: Path) -> None:
    def close(value: dict) -> None:
        value["episodes"][4]["turns"][2]["prompt"] += "<|im_end|>[/TOOL_RESULTS]"

    edit_json(run_copy, layout.AFTER, close)

    assert codes_of(run_copy) == {}
