"""Secrets and home folders in records are warned of, and never repeated in full."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest
from PIL import Image, PngImagePlugin

from molforge_eval import layout
from molforge_eval.checks.privacy import check
from molforge_eval.run_directory import load

HEX = "0123456789abcdef" * 3
WORD = "Ab3" * 20


@pytest.mark.parametrize(
    "secret",
    [
        f"hf_{WORD[:34]}",
        f"ghp_{WORD[:36]}",
        f"github_pat_{WORD[:40]}",
        f"sk-ant-{WORD[:40]}",
        f"sk-proj-{WORD[:40]}",
        "AKIAIOSFODNN7EXAMPLE",
        f"AIza{WORD[:35]}",
        f"ya29.{WORD[:30]}",
        f"xoxb-{WORD[:24]}",
        f"glpat-{WORD[:20]}",
        f"https://hooks.slack.com/services/{WORD[:24]}",
        f"WANDB_API_KEY={HEX[:40]}",
        f"aws_secret_access_key = {WORD[:40]}",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
    ],
)
def test_a_common_token_is_warned_of_and_shown_in_part(run_copy: Path, secret: str) -> None:
    value = orjson.loads((run_copy / layout.ADAPTER_CONFIG).read_bytes())
    (run_copy / layout.ADAPTER_CONFIG).write_bytes(orjson.dumps({**value, "note": secret}))
    (item,) = check(load(run_copy))

    assert (item.code, item.severity, item.where.file) == ("SECRET_PRESENT", "warning", layout.ADAPTER_CONFIG)
    assert secret not in item.what


@pytest.mark.parametrize("path", ["/home/someone/x", "/Users/someone/x", "/" + "root/x", "C:\\Users\\someone\\x"])
def test_a_home_folder_is_warned_of_in_any_record(run_copy: Path, path: str) -> None:
    value = orjson.loads((run_copy / layout.ADAPTER_CONFIG).read_bytes())
    (run_copy / layout.ADAPTER_CONFIG).write_bytes(orjson.dumps({**value, "base_model_name_or_path": path}))
    (run_copy / "adapters" / "README.md").write_text(f"made in {path}")
    found = [(item.code, item.where.file) for item in check(load(run_copy))]

    assert found == [("HOME_PATH_PRESENT", "adapters/README.md"), ("HOME_PATH_PRESENT", layout.ADAPTER_CONFIG)]


def test_the_texts_of_a_picture_are_searched(run_copy: Path) -> None:
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Source", "/home/someone/plot.py")
    texts.add_text("Comment", f"hf_{WORD[:34]}")
    written = io.BytesIO()
    Image.new("RGB", (3, 2)).save(written, format="PNG", pnginfo=texts)
    (run_copy / "plots" / "loss_curve.png").write_bytes(written.getvalue())
    found = {(item.code, item.where.file) for item in check(load(run_copy))}

    assert found == {(code, "plots/loss_curve.png") for code in ("SECRET_PRESENT", "HOME_PATH_PRESENT")}


@pytest.mark.parametrize(
    "word", ["hf_short", "task-force", "AKIA", "/home/", "sk-learn", "-----BEGIN CERTIFICATE-----"]
)
def test_what_only_resembles_one_is_let_pass(run_copy: Path, word: str) -> None:
    (run_copy / "adapters" / "README.md").write_text(word)

    assert list(check(load(run_copy))) == []
