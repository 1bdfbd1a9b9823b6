from __future__ import annotations

import re

import pytest
from drawn_once import draw_once

from molforge_eval.report.curves import Size, _level, curve_chart
from molforge_eval.report.figures import draw_figures
from molforge_eval.report.render import renumbered
from molforge_eval.report.series import curve_over_steps
from molforge_eval.report.theme import palettes
from molforge_eval.report.vega_lite import specification_of


@pytest.fixture(scope="module")
def figures(evidence_of):
    return draw_figures(evidence_of("improved"))


def test_ids_of_one_chart_carry_its_name_and_start_at_nought() -> None:
    svg = renumbered(
        '<svg width="10" height="4" viewBox="0 0 10 4"><clipPath id="clip17"/><g clip-path="url(#clip17)"/></svg>\n',
        "a",
    )

    assert svg.body == '<g font-family="Inter" font-size="11px"><clipPath id="a-0"/><g clip-path="url(#a-0)"/></g>'
    assert (svg.width, svg.height) == (10.0, 4.0)


def test_a_text_that_is_no_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="not one SVG element"):
        renumbered("<p>no</p>", "a")


def test_charts_that_are_drawn_once_for_many_tests_are_those_of_a_build(figures, evidence_of) -> None:
    draw_once(evidence_of("incomplete"))

    assert draw_once(evidence_of("improved")) == figures


def test_no_two_charts_share_an_id(figures) -> None:
    ids = [found for svg in figures.values() for found in re.findall(r'\bid="([^"]+)"', svg.body)]

    assert len(ids) == len(set(ids))


def test_a_chart_has_no_style_attribute_script_or_address(figures) -> None:
    for svg in figures.values():
        assert not re.search(
            r"style=|<script|<image|<foreignObject|(?<!xmlns:)href=\"(?!#)|https?://(?!www\.w3)", svg.body
        )


def test_every_colour_of_a_chart_is_one_of_the_palette(figures) -> None:
    known = set(palettes()["light"].values())
    used = {hue for svg in figures.values() for hue in re.findall(r'"(#[0-9a-fA-F]{3,8})"', svg.body)}

    assert used <= known


def test_every_text_of_a_chart_is_set_in_the_shipped_face(figures) -> None:
    faces = {face for svg in figures.values() for face in re.findall(r'font-family="([^"]+)"', svg.body)}

    assert faces == {"Inter"}


def test_an_evaluation_that_is_missing_has_no_mark(evidence_of, figures) -> None:
    with_both, without = figures["hero"].body, draw_once(evidence_of("incomplete"))["hero"].body

    assert palettes()["light"]["after"] in with_both
    assert palettes()["light"]["after"] not in re.sub(r'stroke-opacity="0?\.13"[^>]*', "", without)
    assert "after" not in without


def test_a_run_without_anything_draws_what_it_has(evidence_of) -> None:
    drawn = draw_once(evidence_of("no plan"))

    assert "hero" not in drawn
    assert "reward" in drawn


def test_a_plan_without_any_evaluation_draws_no_chart_of_reference_policies_alone(check, plan) -> None:
    from molforge_eval.report.assembly import assemble_evidence

    evidence = assemble_evidence(check(None, None, plan))

    assert len(evidence.tasks) == 3
    assert "hero" not in draw_once(evidence)


def test_every_chart_has_a_form_that_a_phone_shows_whole(figures) -> None:
    narrowest = {name.removesuffix("_narrow"): figures[name].width for name in sorted(figures)}

    assert figures["hero"].width > 500
    assert {name: width for name, width in narrowest.items() if width > 350} == {}


def test_a_picture_keeps_what_it_shows_and_nothing_else() -> None:
    svg = renumbered(
        '<svg width="9" height="9"><g class="a" role="graphics-object"><path class="background" d="M0,0" opacity="1"/>'
        '<path class="background" d="M0.123456,0" fill="#fff"/><g aria-hidden="true"></g>'
        '<text> class="b" role="c" 1.23456</text></g></svg>',
        "a",
    )

    inside = '<g><path d="M0.12,0" fill="#fff"/><text> class="b" role="c" 1.23456</text></g>'

    assert svg.body == f'<g font-family="Inter" font-size="11px">{inside}</g>'


def test_a_form_that_stands_at_many_places_is_written_once() -> None:
    stamps = "".join(f'<path transform="translate({x},7)" d="M0,0h1" fill="#fff"/>' for x in range(4))
    svg = renumbered(f'<svg width="9" height="9"><g>{stamps}</g></svg>', "a")

    assert svg.body.count("M0,0h1") == 1
    assert '<defs><path id="a-0" d="M0,0h1" fill="#fff"/></defs>' in svg.body
    assert [f'<use href="#a-0" x="{x}" y="7"/>' in svg.body for x in range(4)] == [True] * 4


@pytest.mark.parametrize("value", [0.5, 5e-6, 0.0, -1.25])
def test_a_curve_of_one_value_has_that_value_as_its_one_tick(value: float) -> None:
    curve = curve_over_steps(range(4), [value] * 4, "loss")
    drawn = specification_of(curve_chart(curve, y_title="loss", role="after", size=Size(200, 90)))
    y = drawn["layer"][0]["encoding"]["y"]
    low, high = y["scale"]["domain"]

    assert y["axis"]["values"] == [value]
    assert low < value < high
    assert "domain" not in str(_level([value, value + 1], zero=False)["scale"])
