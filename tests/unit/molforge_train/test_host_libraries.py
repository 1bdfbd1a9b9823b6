from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import huggingface_hub.constants
import pytest

import molforge_train
from molforge_env.errors import MissingDependencyError
from molforge_train.host_libraries import import_host, quieten_libraries, untested_versions

ROOT = Path(__file__).parents[3]
TESTED = tomllib.loads((Path(molforge_train.__file__).parent / "tested_versions.toml").read_text())
BLOCKED = """
import sys
class Gap:
    def find_spec(self, name, path=None, target=None):
        if name == "{gap}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Gap())
from molforge_train.host_libraries import import_host
from molforge_env.errors import MissingDependencyError
try:
    import_host({{"{library}": ("{name}",)}})
except MissingDependencyError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("gap", "library", "name"),
    [("accelerate", "trl", "GRPOTrainer"), ("pyarrow", "datasets", "Dataset"), ("yaml", "peft", "LoraConfig")],
)
def test_a_module_that_a_library_wants_and_has_not_is_named_with_its_mend(gap: str, library: str, name: str) -> None:
    words = [sys.executable, "-P", "-c", BLOCKED.format(gap=gap, library=library, name=name)]
    told = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    package = {"yaml": "pyyaml"}.get(gap, gap)

    assert told.endswith(
        f"{library} wants the module {gap}, which this environment has not\n"
        f"  where: python package {library}\n"
        f"  mend:  Install it: pip install {package}\n"
    )


def write_library(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "raise RuntimeError(\"Failed to import x because:\\nNo module named 'jmespath'\")",
            "wants the module jmespath",
        ),
        ("import no_such_module.inner", "wants the module no_such_module"),
        ('raise ValueError("two versions of one library")', "cannot be imported: two versions of one library"),
        ("Other = 1", "cannot be imported"),
    ],
)
def test_a_library_that_fails_at_import_is_named_in_three_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, what: str
) -> None:
    name = f"odd_library_{abs(hash(text))}"
    write_library(tmp_path, name, text, monkeypatch)
    with pytest.raises(MissingDependencyError) as refusal:
        import_host({name: ("Wanted",)})

    assert what in refusal.value.what
    assert "pip install" in refusal.value.mend


def test_the_libraries_of_this_environment_can_be_imported_and_were_tested() -> None:
    import_host()

    assert list(untested_versions()) == []


def test_a_version_outside_the_tested_series_is_said() -> None:
    installed = {name: f"{series}.7" for name, series in TESTED.items()} | {"trl": "1.20.0"}

    assert list(untested_versions(installed)) == [
        "trl 1.20.0 was not tested with this version; 1.16 was (constraints.txt)"
    ]


def test_the_tested_series_are_those_of_the_constraints() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)

    assert {name: ".".join(pinned[name].split(".")[:2]) for name in TESTED} == TESTED


def test_nothing_is_told_to_the_makers_of_the_libraries() -> None:
    quieten_libraries()

    assert huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY
