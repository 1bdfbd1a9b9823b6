"""What `action.yml` runs, run as GitHub runs it: the bash of each step, its environment, its output files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import orjson
import pytest
import yaml
from evidence_builder import edit_line

from molforge_eval.cli import check

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
HOSTILE_FOLDER = "##[error]b ::add-mask::c"
IMPOSTORS = ("venv", "pip", "molforge_eval", "sitecustomize", "orjson")


class Runner:
    """One job: what its steps have written, and the folder that they share."""

    def __init__(self, workspace: Path, temp: Path, **inputs: str) -> None:
        self.workspace, self.temp = workspace, temp
        given = {name: body.get("default", "") for name, body in ACTION["inputs"].items()}
        self.values = {f"inputs.{name}": value for name, value in (given | inputs).items()}
        self.summary = temp / "summary.md"
        self.summary.write_bytes(b"")

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        (step,) = (step for step in STEPS if step.get("id") == name)
        outputs = self.temp / f"outputs-{name}"
        outputs.write_bytes(b"")
        script = self.temp / f"{name}.sh"
        script.write_text(step["run"], encoding="utf-8")
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.temp),
            "OMP_NUM_THREADS": "1",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            # Dependencies and builder are those of the tests; 0 is how pip spells "no environment to build in".
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
        }
        environment |= {key: self._filled(value) for key, value in step.get("env", {}).items()}
        line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(line, cwd=self.workspace, env=environment, capture_output=True, text=True, check=False)
        for output in outputs.read_text(encoding="utf-8").splitlines():
            key, _, value = output.partition("=")
            self.values[f"steps.{name}.outputs.{key}"] = value
        return done

    def output(self, name: str) -> str:
        return self._filled(ACTION["outputs"][name]["value"])

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self.values.get(found[1], ""), text)


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's folder after the install step, which ran among modules that a stranger left to be imported."""
    folder = tmp_path_factory.mktemp("runner")
    workspace = tmp_path_factory.mktemp("strange")
    lay_impostors(workspace)
    packages = lend_dependencies(folder)
    done = Runner(workspace, folder).step("install")

    assert done.returncode == 0, done.stderr
    assert not (workspace / "owned").exists()
    assert (packages / "molforge_eval" / "_shipped" / "schemas").is_dir()
    return folder


@pytest.fixture
def workspace(sample_run_archive: Path, tmp_path: Path) -> Path:
    with tarfile.open(sample_run_archive) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (run,) = (tmp_path / "unpacked").iterdir()
    folder = tmp_path / "workspace"
    shutil.copytree(run, folder / "submissions" / "a sound one")
    flawed = shutil.copytree(run, folder / "submissions" / HOSTILE_FOLDER)
    edit_line(flawed, 3, chain="0" * 64)
    lay_impostors(folder)
    return folder


def lend_dependencies(temp: Path) -> Path:
    """Lay what the tests have installed, without the package itself, where the new environment finds it."""
    lent = temp / "lent"
    lent.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "molforge" not in entry.name and entry.suffix != ".pth":
            (lent / entry.name).symlink_to(entry)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = temp / "molforge-evidence" / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (packages / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    return packages


def lay_impostors(folder: Path) -> None:
    for name in IMPOSTORS:
        (folder / f"{name}.py").write_text("open('owned', 'w').close()\nraise SystemExit(0)\n", encoding="utf-8")


def lines_that_github_reads(log: str) -> list[str]:
    """Lines that the runner reads as commands: those outside of what `stop-commands` switches off."""
    read, token = [], None
    for line in log.splitlines():
        if token is not None:
            token = None if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.lstrip().startswith("::") or "##[" in line:
            read.append(line)
    assert token is None
    return read


def test_the_action_validates_annotates_summarises_and_fails(temp: Path, workspace: Path) -> None:
    runner = Runner(workspace, temp, paths="\n  submissions/*/  \n\n", require="E2")
    done = runner.step("validate")
    reports = Path(runner.output("reports"))
    read = lines_that_github_reads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert runner.output("exit-code") == "1"
    assert "looked at:" in done.stdout
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in read)
    assert any("title=CHAIN_BROKEN" in line for line in read)
    assert any(line.startswith("::notice title=submissions/a sound one::level E2") for line in read)
    assert runner.summary.read_text(encoding="utf-8").startswith("## MolForge Evidence\n")
    assert len(orjson.loads((reports / "findings.json").read_bytes())) == 2
    assert orjson.loads(Path(runner.output("sarif")).read_bytes())["version"] == "2.1.0"
    assert ET.parse(reports / "findings.xml").getroot().get("name") == "molforge-eval"
    assert runner.step("leave").returncode == 1
    assert not (workspace / "owned").exists()


def test_a_sound_run_passes_and_its_packet_is_built(temp: Path, workspace: Path) -> None:
    runner = Runner(workspace, temp, paths="submissions/a sound one", require="E2", strict="true", packet="true")
    assert runner.step("validate").returncode == 0
    packets = runner.step("packet")

    assert packets.returncode == 0, packets.stderr
    assert lines_that_github_reads(packets.stdout) == []
    assert (Path(runner.output("packets")) / "1" / "judge_packet.html").is_file()
    assert runner.step("leave").returncode == 0


def test_waivers_of_the_maintainer_let_a_finding_pass(temp: Path, workspace: Path) -> None:
    for code in ("CHAIN_BROKEN", "CHECKSUM_DIFFERS"):
        entry = f'[[waiver]]\ncode = "{code}"\nwhere = "*"\nreason = "known"\nuntil = 9999-12-31\n'
        with (workspace / "waivers.toml").open("a", encoding="utf-8") as file:
            file.write(entry)
    runner = Runner(workspace, temp, paths="submissions/*", waivers="waivers.toml")
    done = runner.step("validate")

    assert runner.output("exit-code") == "0", done.stdout
    assert "waived (2): CHAIN_BROKEN at * until 9999-12-31: known" in done.stdout
    assert "waived" in runner.summary.read_text(encoding="utf-8")


def test_a_link_out_of_the_working_folder_is_not_followed(temp: Path, workspace: Path) -> None:
    (workspace / "linked").mkdir()
    (workspace / "linked" / "b").symlink_to(workspace.parent / "unpacked" / "sample")
    (workspace / "linked" / "a").symlink_to(workspace / "submissions" / "a sound one")
    runner = Runner(workspace, temp, paths="linked/*")
    done = runner.step("validate")

    assert "links out of the working folder, which were not followed: 1" in done.stdout
    assert runner.summary.read_text(encoding="utf-8").count("### ") == 1
    assert runner.step("leave").returncode == 3


@pytest.mark.parametrize(
    ("paths", "code"), [("", 2), ("nothing/*", 2), ("nothing", 3), ("--help", 3), ("$(touch owned)", 3)]
)
def test_paths_that_lead_to_no_run_fail_with_their_reason(temp: Path, workspace: Path, paths: str, code: int) -> None:
    runner = Runner(workspace, temp, paths=paths)
    done = runner.step("validate")

    assert any(line.startswith("::error title=") for line in lines_that_github_reads(done.stdout))
    assert runner.step("leave").returncode == code
    assert not (workspace / "owned").exists()


def test_no_input_is_written_into_a_script_and_only_githubs_own_actions_are_used() -> None:
    assert [step["name"] for step in STEPS if "${{" in step.get("run", "")] == []
    assert [step["uses"] for step in STEPS if not step.get("uses", "actions/").startswith("actions/")] == []


def test_the_workflow_of_the_page_gives_inputs_that_the_action_has() -> None:
    page = (ROOT / "docs" / "validate_in_ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    workflow, hooks = blocks
    _, step = workflow["jobs"]["validate"]["steps"]
    offered = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}

    assert set(step["with"]) <= set(ACTION["inputs"])
    assert all(f"| `{name}` |" in page for name in [*ACTION["inputs"], *ACTION["outputs"]])
    assert {hook["id"] for repo in hooks["repos"] for hook in repo["hooks"]} == offered


def test_a_hook_calls_a_command_that_exists() -> None:
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")):
        assert hook["entry"].split() == ["molforge-eval", check.validate.name]
