from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from molforge_train.provenance import git_commit, hardware, packages, scrubbed


@pytest.mark.parametrize(
    ("private", "public"),
    [
        (f"{Path.home()}/models/x", "~/models/x"),
        (f"from {Path.cwd()}/runs/a to b", "from ./runs/a to b"),
        ("/home/someone/x and /Users/someone/y", "~/x and ~/y"),
        ("C:\\Users\\someone\\x", "~\\x"),
        ("hf_" + "a" * 34, "[token]"),
        ("key=ghp_" + "B" * 36, "key=[token]"),
        ("github_pat_" + "c" * 40, "[token]"),
        ("wandb_v1_" + "d" * 40, "[token]"),
        ("WANDB_API_KEY=" + "e" * 40, "[token]"),
        ("xoxb-" + "f" * 24, "[token]"),
        ("fetch https://user:pass@host.example/x and mail a@b", "fetch https://[login]@host.example/x and mail a@b"),
        ("molforge_train/models/tiny/base", "molforge_train/models/tiny/base"),
        ("/content/molforge_rl_runs", "/content/molforge_rl_runs"),
    ],
)
def test_private_text_is_taken_out_and_the_rest_stays(private: str, public: str) -> None:
    assert scrubbed(private) == public


def test_a_machine_is_described_without_its_name() -> None:
    text = hardware("some accelerator").model_dump_json()

    assert "some accelerator" in text
    assert f'"{platform.node()}"' not in text


def test_the_packages_that_a_result_depends_on_are_listed() -> None:
    assert {"python", "torch", "trl", "peft", "transformers", "rdkit"} <= set(packages())


def test_the_commit_is_that_of_the_source(repository: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    commit = git_commit()

    assert commit.id is not None
    assert commit.id.removesuffix("-dirty") == head.stdout.strip()
    assert commit.reason is None
