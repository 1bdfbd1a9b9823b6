"""The page about templates is held to what templates are given."""

from __future__ import annotations

import re

import pytest

from molforge_eval.ladder import ladder
from molforge_eval.report.comparison_assembly import assemble_comparison
from molforge_eval.report.comparison_pages import comparison_words
from molforge_eval.report.rivals import enter_runs
from molforge_eval.report.wording import Medium, open_templates, words_for
from molforge_eval.shipped import template_folder

MEDIUM = Medium(lambda body: body, str, shelf=None)


@pytest.fixture(scope="module")
def page(request) -> str:
    return (request.config.rootpath / "docs" / "templates.md").read_text(encoding="utf-8")


def test_every_name_of_a_packet_is_listed(page, evidence_of) -> None:
    told = page.partition("In a packet:")[2].partition("In a comparison:")[0]
    names = words_for(evidence_of("improved"), {}, MEDIUM)

    assert [name for name in names if f"`{name}`" not in told and f"`{name}(" not in told] == []


def test_every_name_of_a_comparison_is_listed(page, entry) -> None:
    told = page.partition("In a comparison:")[2].partition("Filters beside")[0]
    evidence = assemble_comparison(enter_runs([entry(1, 0.3), entry(2, 0.7)]), ladder())

    assert [n for n in comparison_words(evidence, {}, MEDIUM) if f"`{n}`" not in told and f"`{n}(" not in told] == []


def test_every_filter_and_word_of_ours_is_listed_and_no_other(page) -> None:
    import jinja2

    ours = set(open_templates().filters) - set(jinja2.Environment().filters)  # noqa: S701 # nothing is rendered by it
    told = page.partition("Filters beside")[2]
    rows = re.findall(r"^\| (`.*?) \|", told, re.MULTILINE)
    listed = {name.partition("(")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}

    assert listed == ours


def test_every_template_is_named_and_every_named_one_is_there(page) -> None:
    folder = template_folder()
    # The card of a model is no page, and no folder of one's own is looked into for it.
    there = {path.name for path in folder.glob("*.j2")} - {"model_card.md.j2"}
    named = set(re.findall(r"`([a-z_]+\.(?:html|css)\.j2)`", page.partition("## The files")[2]))

    assert there == named
