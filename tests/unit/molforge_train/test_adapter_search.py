"""An adapter is found where Colab and Kaggle put it; where it is nowhere, the places are named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from molforge_env.errors import UsageError
from molforge_train.adapter_search import adapter_folder, search_adapter, with_found_adapter
from molforge_train.cli import cli
from molforge_train.config import resolve, shipped_path
from molforge_train.recording import read_clock

ADAPTER = Path(shipped_path("molforge_train/models/tiny/sft_adapter"))


def lay(folder: Path) -> Path:
    shutil.copytree(ADAPTER, folder)
    return folder


def resolved(adapter: str):
    return resolve("tiny-cpu", {"sft_adapter_path": adapter}, {}, now=read_clock())


@pytest.mark.parametrize(
    "place",
    [
        "content/sft_v4",
        "content/drive/MyDrive/sft_v4",
        "kaggle/working/sft_v4",
        "kaggle/input/sft_v4",
        "kaggle/input/someone/sft_v4",
        "kaggle/input/models/someone/qwen/sft_v4",
        # Packed with its own folder, and unpacked into one of that name.
        "kaggle/input/sft_v4/sft_v4",
        "content/drive/MyDrive/sft_v4/checkpoint/final",
    ],
)
@pytest.mark.parametrize("name", ["sft_v4", "someone/sft_v4", "/content/drive/MyDrive/elsewhere/sft_v4"])
def test_it_is_found_in_the_usual_places_by_its_last_part(tmp_path: Path, place: str, name: str) -> None:
    folder = lay(tmp_path / place)

    assert search_adapter(name, root=tmp_path).folder == folder


def test_a_path_below_a_usual_place_is_found_whole(tmp_path: Path) -> None:
    folder = lay(tmp_path / "content/drive/MyDrive/models/sft_v4")

    assert search_adapter("models/sft_v4", root=tmp_path).folder == folder


def test_the_folder_that_is_named_wins_over_every_other_place(tmp_path: Path) -> None:
    lay(tmp_path / "content/sft_v4")
    named = lay(tmp_path / "mine/sft_v4")

    assert search_adapter(str(named), root=tmp_path).folder == named


def test_an_adapter_that_is_nowhere_ends_in_three_lines_that_list_the_places(tmp_path: Path) -> None:
    (tmp_path / "kaggle/input/other").mkdir(parents=True)

    with pytest.raises(UsageError) as caught:
        with_found_adapter(resolved("sft_v4"), root=tmp_path)

    assert caught.value.what == "there is no adapter sft_v4"
    places = (
        "sft_v4",
        *(str(tmp_path / place) for place in ("content", "content/drive/MyDrive", "kaggle/input/other")),
    )
    assert all(place in caught.value.where for place in places)
    assert "SFT_ADAPTER_PATH" in caught.value.where
    assert "molforge-train sft" in caught.value.mend


def test_several_adapters_in_one_folder_are_named(tmp_path: Path) -> None:
    lay(tmp_path / "content/sft_v4/checkpoint-10")
    lay(tmp_path / "content/sft_v4/checkpoint-20")

    with pytest.raises(UsageError, match="holds 2 adapters: checkpoint-10, checkpoint-20"):
        search_adapter("sft_v4", root=tmp_path)


@pytest.mark.parametrize("name", ["sft_v4.zip", "adapter_model.safetensors"])
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / name).write_bytes(b"PK")

    with pytest.raises(UsageError, match=r"not a folder|one file of the adapter"):
        search_adapter(name, root=tmp_path)


def test_the_found_folder_takes_the_place_of_the_name(tmp_path: Path) -> None:
    folder = lay(tmp_path / "kaggle/input/sft_v4")

    found = with_found_adapter(resolved("/content/drive/MyDrive/sft_v4"), root=tmp_path)
    assert found.configuration.sft_adapter_path == str(folder)


@pytest.mark.parametrize("name", ["molforge_train/models/tiny/sft_adapter", "someone/sft-v4-that-is-on-the-hub"])
def test_a_shipped_adapter_and_a_hub_name_keep_their_names(tmp_path: Path, name: str) -> None:
    assert with_found_adapter(resolved(name), root=tmp_path).configuration.sft_adapter_path == name


def test_the_folder_is_given_to_the_loader(tmp_path: Path) -> None:
    folder = lay(tmp_path / "sft_v4")

    assert adapter_folder(str(folder)) == folder
    assert adapter_folder("molforge_train/models/tiny/sft_adapter") == ADAPTER


def test_the_command_says_where_it_looked() -> None:
    answer = CliRunner().invoke(
        cli, ["grpo", "--preset", "tiny-cpu", "--dry-run"], env={"SFT_ADAPTER_PATH": "sft_v4_of_nobody"}
    )

    assert isinstance(answer.exception, UsageError)
    assert {"/content", "/content/drive/MyDrive"} <= set(answer.exception.where.replace(",", "").split())
