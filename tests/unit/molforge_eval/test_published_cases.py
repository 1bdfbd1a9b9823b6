"""Every published fault is answered by a finding code and tried by a case, or by a test that exists."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from evidence_cases.table import answers, ids_in_use, read_table


def test_every_published_fault_is_tried() -> None:
    own = [answer for answer in answers() if answer.row.part is None]

    assert [answer.id for answer in own if not (answer.cases or answer.row.tests)] == []
    assert [answer.id for answer in own if not (answer.codes or answer.row.tests)] == []


def test_every_fault_that_a_code_or_case_names_is_in_the_table() -> None:
    assert sorted(ids_in_use() - set(read_table())) == []


def test_every_test_that_the_table_names_exists(repository: Path) -> None:
    absent = []
    for name in (name for row in read_table().values() for name in row.tests):
        path, _, function = name.partition("::")
        tree = ast.parse((repository / path).read_text(encoding="utf-8"))
        if function not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
            absent.append(name)

    assert absent == []


def test_the_page_of_published_faults_is_that_of_the_table(repository: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tools.cases_reference"], cwd=repository, capture_output=True, text=True, check=True
    )

    assert printed.stdout == (repository / "docs" / "cases.md").read_text(encoding="utf-8")
