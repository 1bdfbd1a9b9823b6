"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("molforge_env", "molforge_eval", "molforge_train", "molforge_tiny")
LONGEST_MODULE = 350

# Where a float is a reward or a score. Python 3.12 made the built-in `sum` compensate its rounding: the same parts
# would add up to another last digit there.
ADDED_LEFT_TO_RIGHT = ("molforge_env/*.py", "molforge_eval/training_reward.py", "molforge_train/rewards.py")

NAMES_WITHOUT_A_NOUN = {"base", "common", "core", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}


@cache
def _tracked_files() -> tuple[Path, ...]:
    """Files that are or will be committed, without those that only stand in the folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    names = sorted({name.decode() for name in listed.split(b"\0") if name})
    return tuple(path for path in (ROOT / name for name in names) if path.is_file())


def _python_files(*tops: str) -> list[Path]:
    return [path for path in _tracked_files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in tops]


def _modules() -> list[Path]:
    return _python_files(*PACKAGES)


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in _modules():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def _base_name(node: ast.expr) -> str:
    """The words of a base: `FrozenModel[int]` is FrozenModel, `click.Group` stays as it is."""
    return ast.unparse(node.value if isinstance(node, ast.Subscript) else node)


def test_the_three_packages_are_read_by_these_rules() -> None:
    read = {path.relative_to(ROOT).parts[0] for path in _modules()}

    assert read == set(PACKAGES)


def test_no_module_is_longer_than_the_limit() -> None:
    paths = _python_files(*PACKAGES, "benchmarks", "tools")
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    long = {name: lines for name, lines in lengths.items() if lines > LONGEST_MODULE}

    assert long == {}


def test_a_module_is_named_by_what_is_inside() -> None:
    nameless = [
        str(path.relative_to(ROOT))
        for path in _modules()
        if NAMES_WITHOUT_A_NOUN & {path.stem, *path.relative_to(ROOT).parts[:-1]}
    ]

    assert nameless == []


def test_a_class_of_ours_inherits_only_from_the_frozen_model_or_an_exception() -> None:
    own = {node.name for _, node in _classes()}
    wrong = []
    for path, node in _classes():
        bases = [name for name in map(_base_name, node.bases) if name in own]
        strange = [name for name in bases if name != "FrozenModel" and not name.endswith("Error")]
        if len(bases) > 1 or strange:
            wrong.append(f"{_place(path, node.lineno)} {node.name}({', '.join(bases)})")

    assert wrong == []


def test_no_class_is_named_for_a_role() -> None:
    role = re.compile(r"(Mixin|Manager|Impl|Helper|Utils?)$|^Abstract[A-Z]")
    wrong = [f"{_place(path, node.lineno)} {node.name}" for path, node in _classes() if role.search(node.name)]

    assert wrong == []


def test_rewards_and_scores_are_added_left_to_right() -> None:
    guarded = sorted({path for pattern in ADDED_LEFT_TO_RIGHT for path in ROOT.glob(pattern)})
    wrong = [
        _place(path, node.lineno)
        for path in guarded
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum"
    ]

    assert {"rewards.py", "grading.py", "transitions.py"} <= {path.name for path in guarded}
    assert wrong == []


def test_every_ignore_says_why_in_its_line() -> None:
    mark = re.compile(
        r"#\s*(?P<kind>noqa|type:\s*ignore|pragma:\s*no\s*cover|ruff:\s*noqa|mypy:)(?P<rest>.*)", re.IGNORECASE
    )
    codes = re.compile(r"^\s*(:\s*[A-Z]+[0-9]+(\s*,\s*[A-Z]+[0-9]+)*|\[[a-z, -]+\])")
    reason = re.compile(r"[A-Za-z]{4,}")
    bare = []
    for path in _python_files(*PACKAGES, "tests", "benchmarks", "tools"):
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            found = mark.search(token.string) if token.type == tokenize.COMMENT else None
            if found is None:
                continue
            named = codes.match(found["rest"])
            after = found["rest"][named.end() :] if named else found["rest"]
            is_coverage = found["kind"].lower().startswith("pragma")
            if not (named or is_coverage) or not reason.search(after):
                bare.append(f"{_place(path, token.start[0])} {token.string}")

    assert bare == []


def test_every_ignore_of_the_configuration_says_why_in_its_line() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    code = re.compile(r'^\s*"[A-Z]{1,4}[0-9]*",')
    ignored = [(number, line) for number, line in enumerate(lines, start=1) if code.match(line)]
    bare = [f"pyproject.toml:{number} {line.strip()}" for number, line in ignored if "# " not in line]

    assert len(ignored) > 10
    assert bare == []


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    skipping = re.compile(r"^(skip|skipif|xfail|importorskip)$")
    wrong = [
        _place(path, node.lineno)
        for path in _python_files("tests")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute)
        and skipping.match(node.attr)
        and isinstance(node.value, ast.Name | ast.Attribute)
        and _base_name(node.value) in {"pytest", "pytest.mark", "mark", "unittest"}
    ]

    assert wrong == []


def test_no_text_holds_a_path_of_one_machine() -> None:
    machine = re.compile(r"(?<![\w.~$}])/(?:work|root|farm)/[A-Za-z0-9_.]|/home/(?!user\b|someone\b)[a-z]")
    found = []
    for path in _tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a font, a picture, weights
        found += [
            f"{_place(path, number)} {line.strip()[:80]}"
            for number, line in enumerate(lines, 1)
            if machine.search(line)
        ]

    assert found == []


def test_no_comment_puts_work_off() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [
        _place(path, token.start[0])
        for path in _python_files(*PACKAGES, "benchmarks", "tools")
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        if token.type == tokenize.COMMENT and later.search(token.string)
    ]

    assert found == []
