"""The warm start: a shortened recipe is rebuilt, and the shipped files are what their record says."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from molforge_env.errors import UsageError
from molforge_env.interface import observation_text, prompt_text, tool_schemas
from molforge_env.tools import ToolSession
from molforge_tiny.command import command
from molforge_tiny.warmstart import (
    LOG_NAME,
    RECIPE_NAME,
    WarmstartRecord,
    identify_files,
    make_warmstart,
    read_recipe,
)

SHIPPED = Path(str(files("molforge_train") / "models" / "tiny"))


def shortened(seed=None):
    recipe = read_recipe("tiny-cpu", seed=seed)
    return recipe.model_copy(
        update={
            "threads": 1,
            "base_transcripts": recipe.base_transcripts.model_copy(update={"conversations": 16}),
            "sft_transcripts": recipe.sft_transcripts.model_copy(update={"conversations": 8}),
            "base": recipe.base.model_copy(update={"steps": 10, "batch_size": 2, "warmup_steps": 2}),
            "sft": recipe.sft.model_copy(update={"steps": 4, "batch_size": 2, "warmup_steps": 1}),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("warmstart") / "first"
    shown = []
    record = make_warmstart("tiny-cpu", shortened(), folder, show=lambda *step: shown.append(step))
    return folder, record, shown


def losses(folder, stage):
    lines = [orjson.loads(line) for line in (folder / LOG_NAME).read_bytes().splitlines()]
    return [line["loss"] for line in lines if line["stage"] == stage and "loss" in line]


def test_the_base_learns(made):
    curve = losses(made[0], "base")

    assert len(curve) == 10
    assert curve[-1] < 0.7 * curve[0]


def test_the_adapter_learns(made):
    curve = losses(made[0], "sft")

    assert len(curve) == 4
    assert curve[-1] < curve[0]


def test_every_step_is_shown(made):
    assert [step[:3] for step in made[2]] == [("base", n, 10) for n in range(1, 11)] + [
        ("sft", n, 4) for n in range(1, 5)
    ]


def test_the_record_names_every_file_by_its_hash(made):
    folder, record, _ = made
    written = WarmstartRecord.model_validate_json((folder / RECIPE_NAME).read_bytes())

    assert written == record
    assert record.files == identify_files(folder)
    assert {"base/model.safetensors", "sft_adapter/adapter_model.safetensors", LOG_NAME} <= set(record.files)


def test_the_same_recipe_gives_the_same_bytes(made, tmp_path):
    again = make_warmstart("tiny-cpu", shortened(), tmp_path / "again", show=lambda *_: None)

    assert again.files == made[1].files
    assert again.transcripts_sha256 == made[1].transcripts_sha256


def test_a_folder_that_exists_is_refused_and_left_alone(tmp_path):
    (tmp_path / "note.txt").write_text("kept", encoding="utf-8")

    with pytest.raises(UsageError, match="exists"):
        make_warmstart("tiny-cpu", shortened(), tmp_path, show=lambda *_: None)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_an_unknown_recipe_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="tiny-cpu"):
        read_recipe("huge-gpu")


def test_the_seed_of_the_command_line_takes_the_place_of_the_recipes():
    assert (read_recipe("tiny-cpu", seed=99).seed, read_recipe("tiny-cpu", seed=99).base) == (
        99,
        read_recipe("tiny-cpu").base,
    )


def test_the_command_explains_itself():
    answer = CliRunner().invoke(command, ["--help"])

    assert answer.exit_code == 0
    assert {"--preset", "--out", "--seed"} <= set(re.findall(r"--\w+", answer.output))


def test_shipped_files_are_those_of_the_shipped_record():
    record = WarmstartRecord.model_validate_json((SHIPPED / RECIPE_NAME).read_bytes())

    assert record.files == identify_files(SHIPPED)
    assert record.recipe == read_recipe("tiny-cpu")
    assert 500_000 <= record.parameters <= 1_000_000


def test_the_shipped_model_answers_a_prompt_with_a_valid_call():
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from molforge_env.interface import parse_completion

    tokenizer = AutoTokenizer.from_pretrained(SHIPPED / "base")
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(SHIPPED / "base"), SHIPPED / "sft_adapter")
    session = ToolSession(observation_length="compact")
    session.reset(scenario_id="level_0_easy")
    opening = prompt_text("compact") + observation_text(session.observation, "compact")
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": opening}],
        tools=tool_schemas("compact"),
        add_generation_prompt=True,
        return_tensors="pt",
    )
    answer = model.generate(**prompt, max_new_tokens=24, do_sample=False)
    calls = parse_completion(tokenizer.decode(answer[0, prompt["input_ids"].shape[1] :])).calls

    assert len(calls) == 1
    assert session.call(calls[0].name, calls[0].arguments).step_index == 1


@pytest.mark.parametrize("path", sorted(SHIPPED.rglob("*.json*")), ids=lambda path: path.name)
def test_shipped_text_names_no_path_of_a_machine(path):
    assert not re.search(rb"/(?:home|root|work|tmp|Users)/", path.read_bytes())
