from __future__ import annotations

import pytest

from molforge_eval.report.theme import palettes

TEXT_ROLES = ("ink", "muted", "good", "warn", "bad", "quiet", "link")
GROUNDS = {"good": "good_ground", "warn": "warn_ground", "bad": "bad_ground", "quiet": "quiet_ground"}


def luminance(hue: str) -> float:
    parts = [int(hue[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_light_and_dark_know_the_same_roles() -> None:
    assert set(palettes()["light"]) == set(palettes()["dark"])


def test_roles_of_one_light_colour_share_their_dark_colour() -> None:
    dark_of: dict[str, set[str]] = {}
    for role, hue in palettes()["light"].items():
        dark_of.setdefault(hue, set()).add(palettes()["dark"][role])

    assert {hue: found for hue, found in dark_of.items() if len(found) > 1} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("role", TEXT_ROLES)
def test_text_is_readable_on_the_page_and_on_its_own_ground(scheme, role) -> None:
    hues = palettes()[scheme]

    assert contrast(hues[role], hues["paper"]) >= 4.5
    assert role not in GROUNDS or contrast(hues[role], hues[GROUNDS[role]]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("role", ["before", "after", "reward", "caution"])
def test_a_line_of_a_chart_is_visible_on_the_page(scheme, role) -> None:
    assert contrast(palettes()[scheme][role], palettes()[scheme]["paper"]) >= 3
