from __future__ import annotations

import dataclasses
import shlex

from molforge_eval.report.provenance import list_commands


def command_of(run, **changes) -> list[str]:
    manifest = run.manifest
    settings = manifest.configuration.model_copy(update=changes)
    sources = dict.fromkeys(changes, "environment") | {"output_root": "flag"}
    changed = manifest.model_copy(update={"configuration": settings, "configuration_sources": sources})
    commands = dict(list_commands(dataclasses.replace(run, manifest=changed)))
    return shlex.split(commands["train"])


def test_the_training_command_repeats_what_was_set_over_the_preset(loaded_run) -> None:
    words = command_of(loaded_run, max_steps=7, run_after_eval=False, sft_adapter_path=None, base_model="a model; rm x")

    assert words[:4] == ["molforge-train", "grpo", "--preset", loaded_run.manifest.configuration.preset]
    for flag, value in (
        ("--max-steps", "7"),
        ("--run-after-eval", "0"),
        ("--sft-adapter-path", ""),
        ("--base-model", "a model; rm x"),
        ("--seed", str(loaded_run.manifest.configuration.seed)),
    ):
        assert words[words.index(flag) + 1] == value
    assert "--output-root" not in words


def test_a_run_without_a_preset_is_made_again_without_one(loaded_run) -> None:
    settings = loaded_run.manifest.configuration.model_copy(update={"preset": "default"})
    run = dataclasses.replace(loaded_run, manifest=loaded_run.manifest.model_copy(update={"configuration": settings}))

    assert "--preset" not in dict(list_commands(run))["train"]
