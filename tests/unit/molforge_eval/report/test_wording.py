from __future__ import annotations

import re

import pytest
from jinja2 import UndefinedError

from molforge_eval.report.number_listing import places_of, rows_of
from molforge_eval.report.page import render_page
from molforge_eval.report.wording import halves, open_templates
from molforge_eval.shipped import template_folder

TEMPLATES = sorted(template_folder().rglob("*.html.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_switches_no_escaping_off(path) -> None:
    assert not re.search(r"\|\s*safe|autoescape|Markup", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_does_no_arithmetic(path) -> None:
    inside = re.findall(r"\{\{.*?\}\}|\{%.*?%\}", path.read_text(encoding="utf-8"), re.DOTALL)
    without_texts = [re.sub(r'"[^"]*"', '""', tag) for tag in inside]

    assert [tag for tag in without_texts if re.search(r"\w\s*[*/+]\s*\w|\w\s+-\s+\w|\bround\b|\bsum\b", tag)] == []


def test_a_name_that_the_evidence_lacks_is_an_error(evidence_of, tmp_path) -> None:
    (tmp_path / "sections").mkdir()
    (tmp_path / "sections" / "first.html.j2").write_text("{{ evidence.identity.colour_of_eyes }}")

    with pytest.raises(UndefinedError, match="colour_of_eyes"):
        render_page(evidence_of("improved"), {}, templates=tmp_path)


def test_a_folder_of_templates_stands_before_the_shipped_ones(evidence_of, tmp_path) -> None:
    (tmp_path / "sections").mkdir()
    (tmp_path / "sections" / "glossary.html.j2").write_text('<section id="glossary">Our own words</section>')
    page = render_page(evidence_of("improved"), {}, templates=tmp_path).decode()

    assert "Our own words" in page
    assert "Results per task" in page


def test_text_is_escaped_in_every_template() -> None:
    template = open_templates().from_string("{{ text }}")

    assert template.render(text="</script><img src=x>") == "&lt;/script&gt;&lt;img src=x&gt;"


def test_a_list_is_cut_into_columns_the_longer_first() -> None:
    assert halves([1, 2, 3]) == ([1, 2], [3])


def test_files_of_one_part_are_named_together(evidence_of) -> None:
    number = evidence_of("improved").number("score.mean.difference")
    (row,) = rows_of([number], (), on_paper=False)

    assert places_of(row) == [("eval_before_training.json and eval_after_training.json", "/episodes/*/final_score")]


def test_numbers_that_share_a_row_have_a_name_without_a_hole(evidence_of) -> None:
    numbers = evidence_of("improved").numbers
    rows = rows_of(numbers, {number.id for number in numbers}, on_paper=True)
    names = [row.name for row in rows]

    assert {"Submissions … training", "Looked at", "Seed …, …, before", "Mean … training"} <= set(names)
    assert [name for name in names if "*" in name or ",," in name or name.endswith((":", ","))] == []
