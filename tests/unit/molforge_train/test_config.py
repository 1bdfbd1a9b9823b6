from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from molforge_env.errors import UnreadableError, UsageError
from molforge_train.config import (
    Resolved,
    choose_preset,
    default_root,
    preset_about,
    preset_names,
    preset_text,
    resolve,
    shipped_path,
    stray_variables,
)
from molforge_train.machine import Gpu, Machine
from molforge_train.settings import SETTINGS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def settle(
    preset: str | None = "tiny-cpu", /, environment: dict[str, str] | None = None, **flags: str | None
) -> Resolved:
    return resolve(preset, flags, environment or {}, now=NOW)


def test_a_flag_wins_over_the_environment_that_over_the_preset_that_over_the_default() -> None:
    everything = settle(environment={"RL_MAX_STEPS": "7", "RL_SEED": "8"}, max_steps="6")

    assert (everything.configuration.max_steps, everything.sources["max_steps"]) == (6, "flag")
    assert (everything.configuration.seed, everything.sources["seed"]) == (8, "environment")
    assert (everything.configuration.max_new_tokens, everything.sources["max_new_tokens"]) == (24, "preset")
    assert (everything.configuration.max_grad_norm, everything.sources["max_grad_norm"]) == (1.0, "default")


def test_every_setting_has_a_source() -> None:
    assert set(settle().sources) == {"preset", *(setting.name for setting in SETTINGS)}
    assert settle().sources["preset"] == "flag"


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.variable], ids=lambda s: s.variable)
def test_every_variable_of_the_workflow_is_read(setting) -> None:
    text = {"whole": "24", "number": "0.5", "switch": "0", "text": (setting.choices or ("somewhere",))[-1]}[
        setting.kind
    ]
    found = settle(environment={setting.variable: text})

    assert found.sources[setting.name] == "environment"
    assert str(getattr(found.configuration, setting.name)) in (text, "False")


def test_an_empty_variable_is_an_unset_one() -> None:
    found = settle(environment={"SFT_ADAPTER_PATH": "", "RL_MAX_STEPS": " "})

    assert found.sources["max_steps"] == "preset"
    assert found.configuration.sft_adapter_path == "molforge_train/models/tiny/sft_adapter"


@pytest.mark.parametrize(
    ("environment", "flags", "place", "value"),
    [
        ({"RL_MAX_STEPS": "many"}, {}, "environment variable RL_MAX_STEPS", "'many'"),
        ({"RL_MAX_STEPS": "0"}, {}, "environment variable RL_MAX_STEPS", "0"),
        ({"RL_LEARNING_RATE": "nan"}, {}, "environment variable RL_LEARNING_RATE", "nan"),
        ({"RL_LEARNING_RATE": "inf"}, {}, "environment variable RL_LEARNING_RATE", "inf"),
        ({"RUN_AFTER_EVAL": "perhaps"}, {}, "environment variable RUN_AFTER_EVAL", "'perhaps'"),
        ({}, {"num_generations": "1"}, "flag --num-generations", "1"),
        ({}, {"loss_type": "mine"}, "flag --loss-type", "'mine'"),
        ({}, {"top_p": "1.5"}, "flag --top-p", "1.5"),
    ],
)
def test_a_bad_value_is_named_with_its_place(environment, flags, place, value) -> None:
    with pytest.raises(UsageError) as refusal:
        settle(environment=environment, **flags)

    assert refusal.value.where == place
    assert f" is {value}," in refusal.value.what
    assert len(str(refusal.value).splitlines()) == 3


def test_a_number_beyond_what_the_libraries_take_is_refused_with_the_place_it_came_from() -> None:
    with pytest.raises(UsageError) as refusal:
        settle(environment={"RL_MAX_STEPS": "9" * 20})

    assert refusal.value.where == "environment variable RL_MAX_STEPS"
    assert refusal.value.mend == "Set a whole number from 1 to 2147483647."


def test_a_preset_may_be_a_file_and_a_wrong_key_in_it_is_named_with_the_nearest(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('base_model = "somewhere"\nmax_step = 4\n')

    with pytest.raises(UsageError, match="'max_step' is no setting") as refusal:
        settle(str(own))

    assert "write max_steps" in refusal.value.mend
    own.write_text('base_model = "somewhere"\nmax_steps = 4\n')
    assert settle(str(own)).configuration.preset == "mine"


@pytest.mark.parametrize("line", ['max_steps = "4"', "max_steps = true", "max_steps = 4.5", "run_after_eval = 1"])
def test_a_preset_value_of_the_wrong_kind_is_refused(tmp_path: Path, line: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(line)

    with pytest.raises(UsageError, match=r"not a whole number|not 1 or 0"):
        settle(str(own))


def test_a_preset_that_is_absent_broken_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.toml").write_text("max_steps = ")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(UsageError, match="there is no preset 'tiny'"):
        settle("tiny")
    with pytest.raises(UsageError, match="no TOML"):
        settle(str(tmp_path / "cut.toml"))
    with pytest.raises(UnreadableError, match="no text"):
        settle(str(tmp_path / "bytes.toml"))


def test_a_run_without_a_base_model_is_refused_with_both_ways_to_name_one() -> None:
    with pytest.raises(UsageError) as refusal:
        settle(None)

    assert "--preset tiny-cpu" in refusal.value.mend
    assert "BASE_MODEL_NAME" in refusal.value.mend


def test_a_run_is_named_by_its_preset_and_the_time() -> None:
    assert settle().configuration.run_name == "tiny-cpu-20260102T030405Z"


def test_the_default_root_is_that_of_the_machine() -> None:
    assert default_root({"COLAB_RELEASE_TAG": "release"}) == "/content/molforge_rl_runs"
    assert default_root({"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}) == "/kaggle/working/molforge_rl_runs"
    assert default_root({}) == "runs"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("RL_MAXSTEPS", "RL_MAXSTEPS is no setting; RL_MAX_STEPS is the nearest"),
        ("RL_LR", "RL_LR is no setting; `molforge-train grpo --help` names them all"),
        ("MOLFORGE_MAX_STEPS", "MOLFORGE_MAX_STEPS is no setting; RL_MAX_STEPS is the nearest"),
        ("NUM_GENERATION", "NUM_GENERATION is no setting; NUM_GENERATIONS is the nearest"),
        ("MAX_COMPLETION_LENGHT", "MAX_COMPLETION_LENGHT is no setting; MAX_COMPLETION_LENGTH is the nearest"),
        (
            "MOLFORGE_RANDOM_SEED",
            "MOLFORGE_RANDOM_SEED is read by a laboratory of its own and not by training; set RL_SEED",
        ),
    ],
)
def test_a_variable_that_looks_like_a_setting_is_named_with_the_nearest(name: str, told: str) -> None:
    assert stray_variables({name: "1", "RL_SEED": "1", "HOME": "x"}) == [told]


def test_variables_of_others_and_those_that_are_read_elsewhere_are_left_alone() -> None:
    others = ("PATH", "OUTPUT_DIR", "MODEL_NAME", "HF_TOKEN", "MOLFORGE_TRACEBACK", "MOLFORGE_SOURCE", "WORLD_SIZE")

    assert stray_variables(dict.fromkeys(others, "1")) == []


@pytest.mark.parametrize(
    "name",
    ["RL_MAX_STEPS", "NUM_GENERATIONS", "RL_DATASET_SIZE", "RL_BATCH_SIZE", "RL_GRAD_ACCUM", "RL_LEARNING_RATE",
     "MAX_COMPLETION_LENGTH", "DRIVE_OUTPUT_DIR", "HF_OUTPUT_REPO", "SFT_ADAPTER_PATH", "BASE_MODEL_NAME", "RUN_NAME"],
)  # fmt: skip
def test_every_variable_that_the_workflow_names_is_a_setting(name: str) -> None:
    assert name in {setting.variable for setting in SETTINGS}


def test_every_shipped_preset_resolves_alone() -> None:
    for name in preset_names():
        assert settle(name).configuration.preset == name
        assert preset_text(name)


def test_a_shipped_path_is_found_wherever_the_command_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert (Path(shipped_path("molforge_train/presets")) / "tiny-cpu.toml").is_file()
    assert shipped_path("elsewhere/model") == "elsewhere/model"


PROCESSOR = Machine((), "2.13.0", torch_uses_gpus=True, free_memory_bytes=None)
GRAPHICS = PROCESSOR._replace(gpus=(Gpu("NVIDIA L4", None, None),))


def test_the_presets_of_the_workflow_have_its_values() -> None:
    demo, strong = settle("colab-demo").configuration, settle("h100-strong").configuration

    assert (demo.max_steps, demo.num_generations, demo.dataset_size) == (80, 2, 120)
    assert (demo.batch_size, demo.gradient_accumulation, demo.learning_rate) == (2, 4, 2e-6)
    assert (strong.max_steps, strong.num_generations, strong.batch_size) == (200, 4, 4)
    assert {demo.base_model, strong.base_model} == {"unsloth/Qwen3.5-2B"}
    assert {demo.device, strong.device} == {"cuda"}


def test_a_machine_with_a_gpu_never_gets_the_toy_preset_unless_it_is_asked_for() -> None:
    chosen = choose_preset(None, {}, {}, GRAPHICS)

    assert chosen.preset == "colab-demo"
    assert "this machine has NVIDIA L4" in chosen.reason
    asked = choose_preset("tiny-cpu", {}, {}, GRAPHICS)
    assert asked == ("tiny-cpu", "as asked; it leaves NVIDIA L4 idle")
    assert choose_preset("h100-strong", {}, {}, GRAPHICS) == ("h100-strong", "as asked")


def test_a_machine_without_a_usable_gpu_gets_the_preset_of_the_processor() -> None:
    for machine in (PROCESSOR, GRAPHICS._replace(torch_uses_gpus=False)):
        chosen = choose_preset(None, {}, {}, machine)
        assert chosen.preset == "tiny-cpu"
        assert "no GPU" in chosen.reason


@pytest.mark.parametrize(
    ("flags", "environment"),
    [({"base_model": "somewhere/model"}, {}), ({}, {"BASE_MODEL_NAME": "somewhere/model"})],
)
def test_a_model_of_ones_own_is_not_trained_by_the_settings_of_the_built_in_one(flags, environment) -> None:
    assert choose_preset(None, flags, environment, PROCESSOR).preset is None
    assert choose_preset(None, flags, environment, GRAPHICS).preset == "colab-demo"
    built_in = {"base_model": "molforge_train/models/tiny/base"}
    assert choose_preset(None, built_in, environment and {}, PROCESSOR).preset == "tiny-cpu"


def test_every_shipped_preset_says_its_machine_and_time() -> None:
    for name in preset_names():
        assert sorted(preset_about(name)) == ["machine", "time"]
