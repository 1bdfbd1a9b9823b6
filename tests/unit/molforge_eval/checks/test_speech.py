"""Whose words and whose calls the records hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evidence_builder import edit_json, read_json, read_lines, reseal, spell_call, write_lines

from molforge_env.interface import Spelling
from molforge_eval import layout
from molforge_eval.checks.speech import is_foreign, unread_calls
from molforge_eval.findings import Finding
from molforge_eval.validate import validate


def found(run: Path, *codes: str) -> list[Finding]:
    reseal(run)
    return [item for item in validate(run).findings if item.code in codes]


def test_c103_calls_that_do_not_stand_in_the_words_of_the_model_are_counted_for_each_arm(run_copy: Path) -> None:
    def silence(value: Any) -> None:
        for entry in value["episodes"]:
            for turn in entry["turns"]:
                turn["raw_completion"] = "Let me think."

    edit_json(run_copy, layout.AFTER, silence)
    calls = sum(len(entry["steps"]) for entry in read_json(run_copy, layout.AFTER)["episodes"])
    (item,) = found(run_copy, "FALLBACK_RULES", "FALLBACK_PRESENT")

    assert (item.code, item.where.file, item.where.pointer) == (
        "FALLBACK_RULES",
        layout.AFTER,
        "/episodes/0/steps/0",
    )
    assert item.what.startswith(f"{calls} of {calls} calls came from a fallback")
    assert "0 of " in item.what


def test_c103_training_lines_that_say_model_and_are_not_its_words_are_a_fallback(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    for line in lines:
        if line["raw_completion"] is not None and line["tool"] is not None:
            line["raw_completion"] = "Let me think."
    write_lines(run_copy, lines)
    (item,) = found(run_copy, "FALLBACK_RULES", "FALLBACK_PRESENT")

    assert (item.code, item.where.file, item.where.line) == ("FALLBACK_RULES", layout.ROLLOUTS, 1)


def test_a_tool_that_is_spelled_with_escapes_is_the_models_own_call() -> None:
    escaped = '<tool_call>{"name": "sub\\u006dit", "arguments": {}}</tool_call>'

    assert not is_foreign("submit", escaped)
    assert is_foreign("edit", escaped)


def test_c016_two_blocks_and_no_call_are_named_with_the_episode_and_kept(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    silent = next(line for line in lines if line["ended_by"] == "no_call")
    silent["raw_completion"] = 2 * spell_call("defer", {})
    write_lines(run_copy, lines)
    (item,) = found(run_copy, "CALL_UNREAD")

    assert (item.severity, item.where.episode) == ("warning", silent["episode_id"])
    assert "opens 2 call blocks" in item.what
    assert silent["raw_completion"] in [line["raw_completion"] for line in read_lines(run_copy)]


@pytest.mark.parametrize(
    ("raw", "ended_by", "form", "is_named"),
    [
        (spell_call("defer", {}), "no_call", "json", True),
        ("<tool_call>{broken</tool_call>", "no_call", "json", True),
        ("<tool_call>{broken</tool_call>", "malformed_call", "json", False),
        (spell_call("defer", {}), "malformed_call", "json", True),
        ("<think>a <tool_call> is next</think> I stop.", "no_call", "json", False),
        ("I stop here.", "no_call", "json", False),
        (spell_call("defer", {}), "turn_limit", "json", False),
        ("<tool_call>\n<function=defer>\n</function>\n</tool_call>", "no_call", "xml", True),
        ("<tool_call>\n<function=defer>\n</function>\n</tool_call>", "malformed_call", "xml", True),
        ("<tool_call>\n<function=defer>\n</function>\n</tool_call>", "malformed_call", "json", False),
        (spell_call("defer", {}), "malformed_call", "xml", False),
        ("I stop here.", "no_call", "xml", False),
    ],
)
def test_a_completion_is_unread_when_it_holds_a_call_that_its_ending_denies(
    raw: str, ended_by: str, form: Any, is_named: bool
) -> None:
    assert (unread_calls(raw, ended_by, Spelling(form)) is not None) is is_named


def test_c013_an_opening_of_another_version_of_the_product_is_not_judged(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    for line in lines:
        line["prompt"] = None if line["prompt"] is None else "Play."
    write_lines(run_copy, lines)
    items = found(run_copy, "PROMPT_BARE")
    assert (items[0].where.line, items[0].where.pointer) == (1, "/prompt")
    edit_json(run_copy, layout.MANIFEST, lambda value: value.update(product_version="0.0.9"))

    assert found(run_copy, "PROMPT_BARE") == []


def test_c027_thirty_episodes_without_an_end_and_one_reward_are_named_once(run_copy: Path) -> None:
    lines = read_lines(run_copy)
    for line in lines:
        line.update(done=False, final_score=None, submission_score=None, progress_score=None)
        if line["ended_by"] is not None:
            line.update(ended_by="length_limit", episode_score=0.0, training_reward=0.0)
    write_lines(run_copy, lines)
    (item,) = found(run_copy, "EPISODES_UNFINISHED", "REWARD_CONSTANT")

    assert item.what == "none of 24 episodes was ended by the laboratory, the reward is 0.0 in all"
