"""The table of codes, and the sentences that are made with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from molforge_env.errors import UsageError
from molforge_eval.catalogue import SHOWN_CHARACTERS, CodeEntry, codes, entry_of, finding, printable, seen


@pytest.mark.parametrize("entry", codes().values(), ids=lambda entry: entry.code)
def test_an_entry_says_what_why_and_how_to_mend_in_whole_sentences(entry: CodeEntry) -> None:
    for text in (entry.meaning, entry.reason, entry.mend):
        assert text.endswith(".")
        assert text[0].isupper()
    assert entry.example


def test_an_unknown_code_cannot_be_used() -> None:
    with pytest.raises(UsageError, match="NO_SUCH"):
        finding("NO_SUCH", "x")


def test_severity_and_mend_come_from_the_table() -> None:
    made = finding("CHAIN_BROKEN", "x", file="a", line=1)

    assert (made.severity, made.mend) == (entry_of("CHAIN_BROKEN").severity, entry_of("CHAIN_BROKEN").mend)


@given(st.text())
def test_a_printable_text_holds_no_character_that_acts(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)


@given(st.none() | st.integers() | st.text() | st.lists(st.floats()))
def test_a_shown_value_is_bounded(value: object) -> None:
    assert len(seen(value)) <= SHOWN_CHARACTERS + len("… (99999 characters)")


def test_the_page_of_findings_is_printed_from_the_table(repository: Path) -> None:
    command = [sys.executable, "-m", "tools.findings_reference"]
    printed = subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout.decode()

    assert (repository / "docs/findings.md").read_text("utf-8") == printed, "run `make docs`"
