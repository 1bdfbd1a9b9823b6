"""The wheel, installed in an empty environment with the source folder out of reach."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

PROGRAMS = ("molforge-env", "molforge-eval", "molforge-report", "molforge-train")


def _run(*line: str | Path, cwd: Path) -> str:
    """Start a program as a stranger would: nothing of this checkout in its environment. What it prints comes back."""
    kept = ("HOME", "LANG", "PATH", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    done = subprocess.run(
        [str(word) for word in line], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, f"{' '.join(map(str, line))} left with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, repository, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def programs(wheel: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs in a fresh environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("empty") / "environment"
    venv.create(folder, with_pip=False)
    programs = folder / "bin"
    pinned = repository / "constraints.txt"
    # Byte code is written for what is imported; compiling all of scipy first would double the time.
    pip = (*_pip_for(programs), "install", "--quiet", "--no-input", "--no-compile")
    _run(*pip, "--constraint", pinned, wheel, cwd=folder)
    return programs


def _pip_for(programs: Path) -> tuple[str | Path, ...]:
    """Our own pip at work in another environment, which then needs none."""
    return (sys.executable, "-m", "pip", "--python", programs / "python")


def _names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_template_font_and_schema(wheel: Path, repository: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "report_templates", "schemas"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = {f"molforge_eval/_shipped/{name}" for name in tracked.split("\0") if name}

    assert {"molforge_eval/_shipped/report_templates/fonts/OFL.txt"} < wanted
    assert any(name.startswith("molforge_eval/_shipped/schemas/") for name in wanted)
    assert wanted - _names(wheel) == set()


def test_the_wheel_holds_the_data_of_each_package(wheel: Path, repository: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "molforge_env", "molforge_eval", "molforge_train", "molforge_tiny"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = {name for name in tracked.split("\0") if name}

    assert {
        "molforge_env/py.typed",
        "molforge_env/data/scenarios.json",
        "molforge_train/presets/colab-demo.toml",
        "molforge_train/presets/h100-strong.toml",
        "molforge_train/presets/tiny-cpu.toml",
    } < wanted
    assert any(name.startswith("molforge_train/models/") and name.endswith(".safetensors") for name in wanted)
    assert wanted - _names(wheel) == set()


def test_the_wheel_holds_nothing_of_the_workshop(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in _names(wheel)}

    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "molforge_env",
        "molforge_eval",
        "molforge_train",
        "molforge_tiny",
    }


def test_the_base_install_has_no_torch(programs: Path, tmp_path: Path) -> None:
    installed = _run(*_pip_for(programs), "list", "--format", "freeze", cwd=tmp_path).splitlines()
    names = {line.partition("==")[0].lower() for line in installed}

    assert "molforge-evidence" in names
    assert names & {"torch", "transformers", "trl", "peft", "datasets", "accelerate"} == set()


def test_the_installed_code_is_not_the_checkout(programs: Path, tmp_path: Path) -> None:
    shown = _run(programs / "python", "-c", "import molforge_eval; print(molforge_eval.__file__)", cwd=tmp_path)

    assert Path(shown.strip()).is_relative_to(programs.parent)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_installed_program_shows_its_help(program: str, programs: Path, tmp_path: Path) -> None:
    shown = _run(programs / program, "--help", cwd=tmp_path)

    assert shown.startswith("Usage: ")


def test_an_installed_evaluator_finds_the_sample_run_sound(programs: Path, sample_run: Path, tmp_path: Path) -> None:
    shown = _run(programs / "molforge-eval", "validate", sample_run, cwd=tmp_path)

    assert "E2" in shown


def test_an_installed_reporter_builds_the_packet(programs: Path, sample_run: Path, tmp_path: Path) -> None:
    # The test of the action has an installed reporter print every chapter.
    (tmp_path / "mine" / "sections").mkdir(parents=True)
    (tmp_path / "mine" / "sections" / "all.html.j2").write_text('{% include "sections/results.html.j2" %}')
    _run(programs / "molforge-report", "build", sample_run, "--templates", tmp_path / "mine", cwd=tmp_path)
    page = (sample_run / "judge_packet.html").read_text(encoding="utf-8")

    assert (sample_run / "judge_packet.pdf").read_bytes().startswith(b"%PDF-1.7")
    assert (sample_run / "evidence.json").stat().st_size > 0
    assert "<title>" in page
