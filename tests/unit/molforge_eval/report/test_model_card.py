from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from molforge_eval import layout
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.model_card import markdown_text, write_card
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.sealing import seal_run
from molforge_eval.validate import validate


@pytest.fixture
def run(sample_run: Path) -> RunDirectory:
    return load(sample_run)


def changed(run: RunDirectory, **settings: object) -> RunDirectory:
    assert run.manifest is not None
    configuration = run.manifest.configuration.model_copy(update=settings)
    return replace(run, manifest=run.manifest.model_copy(update={"configuration": configuration}))


def head_of(card: str) -> dict[str, object]:
    _, head, _ = card.split("---\n", 2)
    found = yaml.safe_load(head)
    assert isinstance(found, dict)
    return found


def test_the_numbers_of_the_card_are_those_of_the_packet(run: RunDirectory, sample_run: Path, tmp_path: Path) -> None:
    card = write_card(run)
    evidence = build_packet(
        sample_run, out=tmp_path, options=PacketOptions(html=False, pdf=False, replay=False)
    ).evidence
    number = evidence.number
    row = next(line for line in card.splitlines() if line.startswith("| **mean, sampled**"))

    assert f"## Result: {evidence.verdict.outcome}" in card
    assert [cell.strip() for cell in row.split("|")[2:4]] == [
        number("score.mean.before").text,
        number("score.mean.after").text,
    ]
    assert row.split("|")[4].split(",")[0].strip() == number("score.mean.difference").text
    for task in evidence.tasks:
        assert f"| {task.label}, sampled | {number(f'score.{task.task}.before').text} |" in card


def test_the_head_is_yaml_that_a_hub_reads(run: RunDirectory) -> None:
    own, fetched = head_of(write_card(run)), head_of(write_card(changed(run, base_model="Qwen/Qwen3.5-2B")))

    assert own["library_name"] == "peft"
    assert own["license"] == "unknown"
    assert "grpo" in own["tags"]
    # A path is no name on a hub; a hub refuses a card that says so.
    assert "base_model" not in own
    assert fetched["base_model"] == "Qwen/Qwen3.5-2B"


def test_text_of_a_run_is_never_markup(run: RunDirectory) -> None:
    hostile = 'a"\n---\n| <img src=x onerror=alert(1)> [x](http://127.0.0.1:9/x) `b` ```'
    assert run.manifest is not None
    named = replace(run, manifest=run.manifest.model_copy(update={"run_name": hostile, "rules_version": hostile}))
    card = write_card(changed(named, base_model=hostile, lr_scheduler=hostile, loss_type=hostile, dtype=hostile))
    plain = write_card(changed(run, base_model="local/path/of/a/model"))

    assert "<img" not in card
    assert "](http" not in card
    assert card.count("---\n") == plain.count("---\n")
    assert [card.count(mark) for mark in "\n|`"] == [plain.count(mark) for mark in "\n|`"]
    assert 'from_pretrained("BASE_MODEL")' in card


def test_a_text_that_marks_nothing_is_left_readable() -> None:
    assert markdown_text("molforge_train/models/tiny/base") == "molforge_train/models/tiny/base"
    assert markdown_text("_emphasis_") == "&#95;emphasis&#95;"
    assert markdown_text("<b>") == "&#60;b&#62;"


@pytest.mark.parametrize("missing", [("after",), ("before",), ("before", "after")])
def test_without_both_evaluations_no_difference_is_claimed(run: RunDirectory, missing: tuple[str, ...]) -> None:
    card = write_card(replace(run, **dict.fromkeys(missing)))

    assert "## Result: incomplete" in card
    assert "No difference is claimed: " in card
    assert "| \N{EN DASH} |" in card
    assert "% interval" not in card


def test_a_run_that_was_stopped_says_so(run: RunDirectory) -> None:
    assert run.manifest is not None
    stopped = run.manifest.model_copy(update={"status": "interrupted", "status_reason": "SIGTERM after step 3 of 16"})

    assert "**The run is interrupted**: SIGTERM after step 3 of 16." in write_card(replace(run, manifest=stopped))


def test_a_run_without_an_adapter_of_its_own_has_no_card(run: RunDirectory) -> None:
    assert run.manifest is not None

    assert write_card(replace(run, manifest=run.manifest.model_copy(update={"output_adapter": None}))) is None
    assert write_card(replace(run, plan=None)) is None


def test_the_card_that_training_writes_is_sound_and_a_number_that_was_changed_is_found(sample_run: Path) -> None:
    path = sample_run / layout.ADAPTER_CARD
    card = write_card(load(sample_run))
    path.write_text(card, "utf-8")
    seal_run(sample_run)
    assert validate(sample_run).findings == ()
    lines = card.split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith("| **mean, sampled**"))
    cells = lines[place].split(" | ")
    cells[2] = "0.99"
    path.write_text("\n".join([*lines[:place], " | ".join(cells), *lines[place + 1 :]]), "utf-8")
    seal_run(sample_run)
    found = validate(sample_run).findings

    assert [(item.code, item.where.line) for item in found] == [("CARD_DIFFERS", place + 1)]


def test_the_card_is_the_same_in_another_process(run: RunDirectory, sample_run: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from molforge_eval.run_directory import load\n"
        "from molforge_eval.report.model_card import write_card\n"
        "sys.stdout.buffer.write(write_card(load(Path(sys.argv[1]))).encode())"
    )
    told = subprocess.run([sys.executable, "-c", script, str(sample_run)], check=True, capture_output=True).stdout

    assert told.decode() == write_card(run)
