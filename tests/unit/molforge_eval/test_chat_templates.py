"""An edited chat template is told from its text, before any weight is read, with the template that it was made from."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from molforge_env.errors import UsageError
from molforge_eval.chat_templates import check_template_files, known_templates, nearest_template
from molforge_eval.policies import Loading, parse_policy
from molforge_train.config import resolve, shipped_path
from molforge_train.policy import load_base
from molforge_train.preflight import check
from molforge_train.recording import read_clock

BASE = Path(shipped_path("molforge_train/models/tiny/base"))
FAMILIES = ("qwen2_5", "qwen3", "qwen3_instruct_2507", "qwen3_5_nothink", "qwen3_5_think")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The built-in base without its weights: whoever loads them fails on that."""
    target = tmp_path / "reuploaded"
    shutil.copytree(BASE, target)
    (target / "model.safetensors").write_bytes(b"no weights")
    return target


def put(folder: Path, text: str | None) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    if text is not None:
        (folder / "chat_template.jinja").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", FAMILIES)
def test_the_templates_of_the_trainer_are_taken(copy: Path, name: str) -> None:
    put(copy, known_templates()[name])

    check_template_files(copy, "someone/model")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("<tool_call>", "<tool_call> ", 1),
        lambda text: "{#- Fixed by someone #}\n" + text,
        lambda text: text.replace("tojson", "tojson | safe", 1),
        lambda text: text + "\n",
    ],
    ids=["one blank", "a comment", "a filter", "a line end"],
)
def test_an_edited_one_is_named_with_the_one_that_it_was_made_from(copy: Path, name: str, edit) -> None:
    put(copy, edit(known_templates()[name]))

    with pytest.raises(UsageError) as caught:
        check_template_files(copy, "someone/model")
    assert f"the chat template is {name} with " in caught.value.what
    assert "someone/model" in caught.value.where
    assert f"trl/chat_templates/{name}.jinja" in caught.value.mend
    assert "upload of Qwen" in caught.value.mend


@pytest.mark.parametrize("edit", [lambda text: text + "\n", lambda text: text.replace("\n", "\r\n")])
def test_other_line_ends_are_called_that(copy: Path, edit) -> None:
    put(copy, None)
    settings = copy / "tokenizer_config.json"
    text = edit(known_templates()["qwen3"])
    settings.write_bytes(orjson.dumps({**orjson.loads(settings.read_bytes()), "chat_template": text}))

    with pytest.raises(UsageError, match="the chat template is qwen3 with other line ends"):
        check_template_files(copy, "someone/model")


def test_a_file_with_the_line_ends_of_another_system_is_taken_as_the_tokenizer_reads_it(copy: Path) -> None:
    from transformers import AutoTokenizer

    text = known_templates()["qwen3"]
    (copy / "chat_template.jinja").write_bytes(text.replace("\n", "\r\n").encode())
    check_template_files(copy, "someone/model")

    assert AutoTokenizer.from_pretrained(copy).chat_template == text


def test_of_two_texts_the_one_in_the_file_counts(copy: Path) -> None:
    known = known_templates()["qwen3"]
    settings = copy / "tokenizer_config.json"
    settings.write_bytes(orjson.dumps({**orjson.loads(settings.read_bytes()), "chat_template": known + " x"}))
    put(copy, known)
    check_template_files(copy, "someone/model")
    put(copy, known + " y")

    with pytest.raises(UsageError, match="the chat template is qwen3 with 1 lines edited") as caught:
        check_template_files(copy, "someone/model")
    assert caught.value.where.endswith(' y"')


@pytest.mark.parametrize("places", ["settings", "files"])
def test_several_templates_by_name_are_refused_before_the_weights(copy: Path, places: str) -> None:
    known = known_templates()["qwen3"]
    if places == "settings":
        put(copy, None)
        settings = copy / "tokenizer_config.json"
        named = [{"name": "default", "template": known}, {"name": "tool_use", "template": known}]
        settings.write_bytes(orjson.dumps({**orjson.loads(settings.read_bytes()), "chat_template": named}))
    else:
        put(copy, known)
        (copy / "additional_chat_templates").mkdir()
        (copy / "additional_chat_templates" / "tool_use.jinja").write_text(known, encoding="utf-8")

    for refuse in (lambda: check_template_files(copy, "a"), lambda: load_base(str(copy), "float32", side="left")):
        with pytest.raises(UsageError, match=r"chat templates by name, .default, tool_use") as caught:
            refuse()
        assert "chat_template.jinja" in caught.value.mend


def test_a_template_without_its_tools_is_named_with_the_line_where_they_were(copy: Path) -> None:
    known = known_templates()["qwen3_5_nothink"]
    begin, end = known.index("{%- if tools and tools"), known.index("{%- set ns = namespace")
    put(copy, known[:begin] + known[end:])

    with pytest.raises(UsageError, match=r"qwen3_5_nothink with \d+ lines edited") as caught:
        check_template_files(copy, "someone/model")
    assert f"line {known[:begin].count(chr(10)) + 1}:" in caught.value.where


@pytest.mark.parametrize("stated", [7, True, [], {}, "", None])
def test_what_is_no_text_is_no_template(copy: Path, stated: object) -> None:
    put(copy, None)
    settings = copy / "tokenizer_config.json"
    settings.write_bytes(orjson.dumps({**orjson.loads(settings.read_bytes()), "chat_template": stated}))

    with pytest.raises(UsageError, match="the model has no chat template"):
        check_template_files(copy, "someone/model")


def test_the_first_edited_line_is_shown() -> None:
    lines = known_templates()["qwen3"].splitlines()
    lines[11] = "{{- 'another text' }}"
    found = nearest_template("\n".join(lines))

    assert found is not None
    assert (found.name, found.line, found.changed) == ("qwen3", 12, 1)


@pytest.mark.parametrize(("text", "what"), [(None, "has no chat template"), ("{{ messages }}", "does not know this")])
def test_a_template_of_another_kind_is_named(copy: Path, text: str | None, what: str) -> None:
    put(copy, text)

    with pytest.raises(UsageError, match=what):
        check_template_files(copy, "someone/model")


def test_a_tokenizer_that_says_how_its_calls_are_read_is_left_to_the_trainer(copy: Path) -> None:
    put(copy, "{{ messages }}")
    settings = copy / "tokenizer_config.json"
    settings.write_bytes(orjson.dumps({**orjson.loads(settings.read_bytes()), "response_template": {"type": "object"}}))

    check_template_files(copy, "someone/model")


def test_training_refuses_it_before_the_weights(copy: Path) -> None:
    put(copy, known_templates()["qwen3"] + " ")
    shutil.copy(BASE / "model.safetensors", copy)
    settings = resolve("tiny-cpu", {"base_model": str(copy)}, {}, now=read_clock()).configuration

    with pytest.raises(UsageError, match="the chat template is qwen3 with"):
        check(settings, {})


def test_the_loaders_of_training_and_evaluation_read_the_template_before_the_weights(copy: Path) -> None:
    from molforge_eval.model_policy import open_model

    put(copy, known_templates()["qwen3_5_nothink"] + " ")
    with pytest.raises(UsageError, match="the chat template is qwen3_5_nothink with"):
        load_base(str(copy), "float32", side="left")
    # An evaluation hashes the weight files first, so these have to be readable.
    shutil.copy(BASE / "model.safetensors", copy)
    with pytest.raises(UsageError, match="the chat template is qwen3_5_nothink with"):
        open_model(parse_policy(f"hf:{copy}"), Loading())
