from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from molforge_eval import layout
from molforge_eval.run_directory import load
from molforge_eval.validate import validate
from molforge_train import notebook as steps

NOTEBOOK = Path(__file__).resolve().parents[3] / "notebooks" / "molforge_grpo_colab_training.ipynb"
FOUR_STEPS = """
base_model = "molforge_train/models/tiny/base"
sft_adapter_path = "molforge_train/models/tiny/sft_adapter"
max_steps = 4
dataset_size = 4
num_generations = 4
batch_size = 8
gradient_accumulation = 1
num_iterations = 2
learning_rate = 0.02
adam_beta2 = 0.99
max_completion_length = 240
max_new_tokens = 24
eval_seeds = 2
seed = 1
observation_length = "compact"
dtype = "float32"
device = "cpu"
"""
VARIABLES = ("RUN_NAME", "DRIVE_OUTPUT_DIR", "HF_OUTPUT_REPO", "SFT_ADAPTER_PATH", "RL_MAX_STEPS")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    (tmp_path / "four.toml").write_text(FOUR_STEPS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pages() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def cell_of(pages: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    return next(cell for cell in pages.cells if cell.id == name)


def test_no_output_is_committed_and_the_cells_are_clean(pages: nbformat.NotebookNode) -> None:
    nbformat.validate(pages)
    code = [cell for cell in pages.cells if cell.cell_type == "code"]
    rules = ["--isolated", "--line-length", "120", "--select", "E,F,W,B,C4,I,PTH,RET,RUF,SIM,UP"]
    for words in (["check", *rules], ["format", "--check", "--isolated", "--line-length", "120"]):
        subprocess.run([sys.executable, "-m", "ruff", *words, str(NOTEBOOK)], check=True, capture_output=True)

    assert code
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)
    assert not any(cell.metadata for cell in pages.cells)


def test_the_notebook_runs_from_top_to_bottom_and_its_run_is_sound(pages: nbformat.NotebookNode, place: Path) -> None:
    settings = cell_of(pages, "settings")
    settings.source = settings.source.replace('PRESET = ""', 'PRESET = "four.toml"').replace(
        '"DRIVE_OUTPUT_DIR": ""', '"DRIVE_OUTPUT_DIR": "drive"'
    )
    NotebookClient(pages, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(place)}}).execute()
    (folder,) = (path for path in (place / "runs").iterdir() if path.is_dir())
    outputs: dict[str, list[Any]] = {cell.id: cell.outputs for cell in pages.cells if cell.cell_type == "code"}
    pictures = [output for output in outputs["plots"] if "image/png" in output.get("data", {})]
    frames = [output["data"]["text/html"] for output in outputs["packet"] if "text/html" in output.get("data", {})]

    assert load(folder).manifest.status == "complete"
    assert load(folder).manifest.steps_completed == 4
    assert validate(folder).findings == ()
    assert len(pictures) == len(list((folder / "plots").glob("*.png"))) >= len(layout.PLOTS)
    assert len(frames) == 1
    assert 'srcdoc="&lt;!doctype html&gt;' in frames[0][:400].casefold()
    assert (folder / layout.PACKET_PDF).is_file()
    # The copy holds the packet too, for it was made again after the build.
    copied = place / "drive" / folder.name
    assert (copied / layout.PACKET_PDF).read_bytes() == (folder / layout.PACKET_PDF).read_bytes()
    assert f"{folder.name}.zip" in json.dumps(outputs["take"])


def test_a_cell_that_fails_shows_three_lines(place: Path) -> None:
    with pytest.raises(steps.StepError) as failed:
        steps.begin({"NUM_GENERATIONS": "5"}, preset="four.toml")
    shown = failed.value._render_traceback_()

    assert len(shown) == 3
    assert "whole groups of 5" in shown[0]
    assert [line[:9] for line in shown[1:]] == ["  where: ", "  mend:  "]


def test_the_token_of_colabs_vault_reaches_the_steps_and_one_gpu_of_two_is_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class RefusedError(Exception):
        pass

    kept = {"HF_TOKEN": "hf_kept"}
    vault = SimpleNamespace(
        get=kept.__getitem__,
        SecretNotFoundError=KeyError,
        NotebookAccessError=RefusedError,
        TimeoutException=RefusedError,
    )
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, module in (("google", SimpleNamespace()), ("google.colab", SimpleNamespace(userdata=vault))):
        monkeypatch.setitem(sys.modules, name, module)
    session = steps.begin({}, preset="four.toml")

    assert (session.environment["HF_TOKEN"], session.environment["CUDA_VISIBLE_DEVICES"]) == ("hf_kept", "0")
    given = steps.begin({"HF_TOKEN": "hf_given"}, preset="four.toml").environment
    assert given["HF_TOKEN"] == "hf_given"  # noqa: S105 # a word of this test
    kept.clear()
    assert "HF_TOKEN" not in steps.begin({}, preset="four.toml").environment


def test_a_checkout_that_is_not_installed_is_installed_from_within_it(
    pages: nbformat.NotebookNode, tmp_path: Path
) -> None:
    source = cell_of(pages, "install").source.partition("places = ")[0]
    program = f"{source}\nprint(is_installed())"
    checkout = Path(__file__).resolve().parents[3]
    # Without the packages of the environment only the source folder is left to be found.
    bare = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(checkout)!r})\n{program}"]
    told = subprocess.run(bare, check=True, capture_output=True, text=True, cwd=checkout)
    here = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=tmp_path)

    assert (told.stdout, here.stdout) == ("False\n", "True\n")


def test_a_command_that_ends_without_its_lines_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(steps.StepError) as failed:
        steps.call("molforge-eval", "explain", "CARD_DIFFERS", environment=os.environ, codes=(7,))

    assert str(failed.value).splitlines()[:2] == [
        "the command ended with exit code 0",
        "  where: molforge-eval explain CARD_DIFFERS",
    ]
    assert "$ molforge-eval explain" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a/b", "../b", "..", "/b"])
def test_a_name_with_a_path_is_refused_in_three_lines(place: Path, name: str) -> None:
    with pytest.raises(steps.StepError, match="is no name for a run") as caught:
        steps.begin({"RUN_NAME": name}, preset="four.toml")
    assert len(str(caught.value).splitlines()) == 3
    assert not (place / "runs").exists()


def test_a_name_that_is_taken_is_counted_on(place: Path) -> None:
    (place / "runs" / "mine").mkdir(parents=True)
    (place / "runs" / "mine" / layout.MANIFEST).write_text('{"status": "complete"}')
    (place / "drive" / "mine-2").mkdir(parents=True)
    session = steps.begin({"RUN_NAME": "mine", "DRIVE_OUTPUT_DIR": "drive"}, preset="four.toml")

    assert session.folder == Path("runs/mine-3")
    assert not session.is_begun


@pytest.mark.parametrize(("status", "resume", "is_begun"), [("interrupted", True, True), ("running", True, True),
                                                            ("failed", True, False), ("complete", True, False),
                                                            ("interrupted", False, False)])  # fmt: skip
def test_a_run_that_was_cut_off_is_gone_on_with(place: Path, status: str, *, resume: bool, is_begun: bool) -> None:
    stopped = place / "runs" / "four-20260101T000000Z"
    stopped.mkdir(parents=True)
    (stopped / layout.MANIFEST).write_text(json.dumps({"status": status}))
    (place / "runs" / "other-1").mkdir()
    (place / "runs" / "other-1" / layout.MANIFEST).write_text('{"status": "running"}')
    session = steps.begin({}, preset="four.toml", resume=resume)

    assert session.is_begun == is_begun
    assert (session.folder.name == stopped.name) == is_begun


def test_a_start_adapter_is_made_where_none_is_found_and_used_again(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"SFT_ADAPTER_PATH": "nowhere", "SFT_CONVERSATIONS": "8", "SFT_STEPS": "1"}
    first = steps.begin(settings, preset="four.toml")
    told = capsys.readouterr().out
    made = Path(first.environment["SFT_ADAPTER_PATH"])
    second = steps.begin(settings, preset="four.toml")

    assert "no start adapter is found" in told
    assert (made / "adapter_model.safetensors").is_file()
    assert validate(made.parent / "sft.jsonl").findings == ()
    assert second.environment["SFT_ADAPTER_PATH"] == str(made)
    assert "$ molforge-train sft" not in capsys.readouterr().out


def test_a_kernel_that_is_killed_leaves_a_run_that_goes_on(place: Path) -> None:
    script = (
        "from molforge_train import notebook as steps\n"
        "steps.train(steps.begin({'RL_MAX_STEPS': '400', 'RUN_BEFORE_EVAL': '0'}, preset='four.toml'))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL) as kernel:
        while kernel.poll() is None and not any(
            path.read_bytes().count(b"\n") >= 2 for path in place.glob(f"runs/*/{layout.TRAINER_LOG}")
        ):
            time.sleep(0.05)
        kernel.kill()
    (folder,) = (path for path in (place / "runs").iterdir() if path.is_dir() and "checkpoints" not in path.name)
    until = time.monotonic() + 120
    while load(folder).manifest.status == "running" and time.monotonic() < until:
        time.sleep(0.2)
    session = steps.begin({"RL_MAX_STEPS": "400"}, preset="four.toml")

    assert kernel.returncode == -signal.SIGKILL
    assert load(folder).manifest.status == "interrupted"
    assert session.is_begun
    assert session.folder.resolve() == folder
