"""Every finding code is given by the smallest run that has its flaw, and by no sound one: cases as files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from evidence_cases.building import Corpus
from evidence_cases.cases import EXAMPLES, SOUND, NamedCase, read_cases
from evidence_cases.judging import faults, judge
from evidence_cases.registry import EDITS, CaseError, make_edit

from molforge_eval.catalogue import codes

# A check that stops is a fault of ours, and no evidence is known that does it: its cases name the check that fails.
OF_FAULTY_CHECKS = "CHECK_STOPPED"
CASES = read_cases()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("named", CASES, ids=lambda named: named.title)
def test_a_case_yields_what_it_says_and_nothing_else(named: NamedCase, corpus: Corpus, tmp_path: Path) -> None:
    assert list(faults(named, judge(named, corpus, tmp_path))) == []


def test_every_code_has_a_folder_with_its_smallest_case_and_every_folder_a_code() -> None:
    smallest = {named.folder for named in CASES if named.name == "case"}
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}

    assert folders - {SOUND} == smallest
    assert smallest == set(codes())


def test_no_case_has_a_faulty_check_but_those_of_the_code_for_it() -> None:
    assert {named.folder for named in CASES if named.case.faulty_check is not None} == {OF_FAULTY_CHECKS}
    assert [named.title for named in CASES if named.case.faulty_check and named.case.expect.exit is not None] == []


def test_every_flawed_case_names_a_finding_of_its_own_code() -> None:
    flawed = [named for named in CASES if named.folder != SOUND and named.case.expect.refused is None]
    silent = [named.title for named in flawed if not any(wanted.code is None for wanted in named.case.expect.findings)]

    assert silent == []
    assert [named.title for named in flawed if named.folder not in named.codes] == []


def test_no_sound_run_yields_an_error() -> None:
    errors = [named.title for named in CASES if named.folder == SOUND and _severities(named) & {"error"}]

    assert errors == []


def _severities(named: NamedCase) -> set[str]:
    return {codes()[code].severity for code in named.codes}


def test_no_two_cases_say_the_same_sentence() -> None:
    sentences = [named.case.did for named in CASES]

    assert sorted({text for text in sentences if sentences.count(text) > 1}) == []


def test_the_page_about_cases_names_every_edit_and_no_other() -> None:
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8").split("## Edits")[1].split("## Archives")[0]
    named = {
        word
        for row in table.splitlines()
        if row.startswith("| `")
        for word in re.findall(r"`(\w+)`", row.split("|")[1])
    }

    assert named == set(EDITS)


def test_an_edit_that_nobody_knows_or_with_wrong_keys_is_named(run_copy: Path) -> None:
    with pytest.raises(CaseError, match="edit 'bend' is none of"):
        make_edit(run_copy, {"op": "bend"})
    with pytest.raises(CaseError, match="edit write: missing a required argument: 'content'; it takes root, file"):
        make_edit(run_copy, {"op": "write", "file": "x"})


def test_an_edit_that_would_change_nothing_is_named(run_copy: Path) -> None:
    for spec in (
        {"op": "replace", "file": "run_manifest.json", "old": "not there", "new": ""},
        {"op": "drop_lines", "where": {"tool": "not there"}},
        {"op": "set", "file": "run_manifest.json", "at": "/not/there", "to": 1},
        {"op": "set", "file": "run_manifest.json", "at": "/run_id", "to": float("nan")},
        {"op": "drop_lines", "start": 10_000},
        {"op": "keys", "file": "eval_plan.json", "at": "/parts/*", "where": {"name": "not there"}, "set": {"a": 1}},
    ):
        with pytest.raises(CaseError, match="cannot be made"):
            make_edit(run_copy, spec)
