from __future__ import annotations

import pytest

from molforge_env.errors import UsageError
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import write_markup
from molforge_eval.report.template_faults import blamed_on, require_template


@pytest.mark.parametrize(
    ("name", "text", "what", "line"),
    [
        ("sections/first.html.j2", "<p>\n{% if %}\n", "cannot be read", 2),
        ("sections/first.html.j2", "<p>\n\n{{ evidence.no_such_thing }}", "uses what is not there", 3),
        ("sections/first.html.j2", "{{ number('score.nothing.at_all').text }}", "names what the evidence lacks", 1),
        ("sections/first.html.j2", "\n{% include 'nowhere.html.j2' %}", "neither in the folder nor shipped", 2),
        ("sections/first.html.j2", "{{ 1 / 0 }}", "raised ZeroDivisionError", 1),
        ("sections/first.html.j2", "{% for i in range(10 ** 9) %}{% endfor %}", "raised OverflowError", 1),
        ("sections/first.html.j2", "\n{{ ''.__class__.__mro__ }}", "raised SecurityError", 2),
        ("sections/first.html.j2", "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "RecursionError", 1),
        ("page.css.j2", "a {\n{{ no_such_colour }}", "uses what is not there", 2),
        ("page.html.j2", "{% include '../outside.html.j2' %}", "neither in the folder nor shipped", 1),
    ],
)
def test_a_template_that_does_not_work_is_three_lines_with_its_file_and_line(
    evidence_of, tmp_path, name, text, what, line
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)

    with pytest.raises(UsageError) as caught, blamed_on(tmp_path):
        render_page(evidence_of("improved"), {}, templates=tmp_path)
    assert what in caught.value.what
    assert caught.value.where == f"{tmp_path / name}:{line}"
    assert "docs/templates.md" in caught.value.mend
    assert len(str(caught.value).splitlines()) == 3


def test_a_template_that_is_no_text_is_named(evidence_of, tmp_path) -> None:
    (tmp_path / "paper.html.j2").write_bytes(b"<p>\n\xff\xfe</p>")

    with pytest.raises(UsageError) as caught, blamed_on(tmp_path):
        write_markup(evidence_of("improved"), {}, templates=tmp_path)
    assert caught.value.where == f"{tmp_path / 'paper.html.j2'}:2"


def test_a_folder_in_which_every_name_is_misspelt_is_refused(tmp_path) -> None:
    (tmp_path / "page.html").write_text("ours")
    (tmp_path / "paper.html.j2").mkdir()

    with pytest.raises(UsageError, match="no file of this folder") as caught:
        require_template(tmp_path, is_comparison=False)
    assert "page.html.j2" in caught.value.mend


@pytest.mark.parametrize(
    ("name", "is_comparison", "document"),
    [
        ("model_card.md.j2", False, "packet"),
        ("compare_body.html.j2", False, "packet"),
        ("page.html.j2", True, "comparison"),
        ("sections/glossary.html.j2", True, "comparison"),
    ],
)
def test_a_folder_of_which_nothing_is_used_is_refused(tmp_path, name, is_comparison, document) -> None:
    (tmp_path / "sections").mkdir()
    (tmp_path / name).write_text("ours")

    with pytest.raises(UsageError, match=f"the name of a template of a {document}") as caught:
        require_template(tmp_path, is_comparison=is_comparison)
    assert name not in caught.value.mend


def test_a_fault_outside_the_folder_passes_as_it_is(tmp_path) -> None:
    (tmp_path / "page.css.j2").write_text("")
    with pytest.raises(ZeroDivisionError), blamed_on(tmp_path):
        _ = 1 / 0
    with pytest.raises(ZeroDivisionError), blamed_on(None):
        _ = 1 / 0


def test_a_template_of_ones_own_stands_for_the_shipped_one(evidence_of, tmp_path) -> None:
    (tmp_path / "sections").mkdir()
    (tmp_path / "sections" / "first.html.j2").write_text("<h1>{{ evidence.identity.title }}, ours</h1>")

    assert b", ours</h1>" in render_page(evidence_of("improved"), {}, templates=tmp_path)
