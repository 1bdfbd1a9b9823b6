"""Templates of one's own may use so much time and memory, and give what they give without a child process."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from molforge_env.errors import UsageError
from molforge_eval.ladder import ladder
from molforge_eval.report.comparison_assembly import assemble_comparison
from molforge_eval.report.comparison_pages import render_comparison_page, write_comparison_sheet
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import OF_TEMPLATES, PaperLimits, write_markup
from molforge_eval.report.rivals import enter_runs
from molforge_eval.report.template_room import page_apart, sheet_apart

TIGHT = PaperLimits(seconds=4, memory_bytes=2**30)
BRIEF = PaperLimits(seconds=1)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of templates; nothing is left among the temporary files."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "mine" / "sections").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "mine"


def _is_clean(folder: Path) -> bool:
    return list((folder.parent / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{{ "a" * 10 ** 10 }}', "needs more memory than it may use"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "counts for too long"),
    ],
)
def test_a_template_that_needs_too_much_is_three_lines_with_its_file_and_line(evidence_of, folder, text, what) -> None:
    file = folder / "sections" / "glossary.html.j2"
    file.write_text(f"<p>\n{text}")

    with pytest.raises(UsageError) as caught:
        page_apart("page", evidence_of("no plan"), {}, templates=folder, limits=TIGHT)
    assert what in caught.value.what
    assert caught.value.where == f"{file}:2"
    assert _is_clean(folder)


def test_one_that_hears_no_word_is_ended(evidence_of, folder) -> None:
    (folder / "paper.html.j2").write_text("{{ 3 ** (10 ** 9) }}")

    with pytest.raises(UsageError, match="more than the 1 seconds of processor time") as caught:
        sheet_apart("paper", evidence_of("no plan"), {}, templates=folder, limits=BRIEF)
    assert caught.value.where == str(folder)
    assert _is_clean(folder)


def test_a_template_that_may_not_be_read_is_named(evidence_of, folder) -> None:
    (folder / "page.html.j2").write_text("{% include 'sections/first.html.j2' %}")
    (folder / "sections" / "first.html.j2").write_bytes(b"\xff")

    with pytest.raises(UsageError, match="no UTF-8") as caught:
        page_apart("page", evidence_of("no plan"), {}, templates=folder, limits=OF_TEMPLATES)
    assert caught.value.where.startswith(str(folder / "sections"))


def test_a_packet_is_the_same_as_without_a_child(evidence_of, folder) -> None:
    evidence = evidence_of("improved")
    (folder / "sections" / "glossary.html.j2").write_text("<h2>Words of {{ evidence.identity.run_name }}</h2>")
    settings = {"created": "2026-01-02T03:04:05Z", "size": "letter", "logs_left_out": True}
    page = page_apart("page", evidence, {}, templates=folder, limits=OF_TEMPLATES)
    sheet = sheet_apart("paper", evidence, {}, templates=folder, limits=OF_TEMPLATES, **settings)

    assert b"Words of" in page
    assert page == render_page(evidence, {}, templates=folder)
    assert sheet == write_markup(evidence, {}, templates=folder, **settings)


def test_a_comparison_is_the_same_as_without_a_child(entry, folder) -> None:
    evidence = assemble_comparison(enter_runs([entry(1, 0.3), entry(2, 0.7)]), ladder())
    (folder / "compare.css.j2").write_text("p { color: red }")
    page = page_apart("comparison page", evidence, {}, templates=folder, limits=OF_TEMPLATES)
    sheet = sheet_apart("comparison paper", evidence, {}, templates=folder, limits=OF_TEMPLATES, size="A4")

    assert page == render_comparison_page(evidence, {}, templates=folder)
    assert sheet == write_comparison_sheet(evidence, {}, templates=folder, size="A4")
