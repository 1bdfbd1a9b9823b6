from __future__ import annotations

from fontTools.ttLib import TTFont

from molforge_eval.report.glyphs import TEXT_FACE, name_undrawn
from molforge_eval.shipped import font_folder


def test_what_the_faces_draw_comes_out_as_it_was() -> None:
    text = "\N{MINUS SIGN}0.5 ± 1 062 · “≥” → Ångström µ Ω <b>&amp;</b>\n\t❤"

    assert name_undrawn(text) == text


def test_an_emoji_is_named_by_its_point_and_its_name() -> None:
    assert name_undrawn("a \N{GRINNING FACE} b") == "a [U+1F600 grinning face] b"
    assert name_undrawn("\N{WHITE SMILING FACE}\ufe0f") == "[U+263A white smiling face U+FE0F]"


def test_letters_of_other_writings_are_named_by_their_points_and_a_long_run_is_counted() -> None:
    assert name_undrawn("\u05e9\u05dc\u05d5\u05dd") == "[U+05E9 U+05DC U+05D5 U+05DD]"
    assert name_undrawn("\u4f60" * 10_000) == "[U+4F60 U+4F60 U+4F60 U+4F60 and 9996 more]"


def test_nothing_that_hides_turns_or_breaks_an_encoder_stays() -> None:
    for mark in ("\u202e", "\u200d", "\u2060", "\ufeff", "\ud800", "\x00", "\x1b", "\ue000", "\U0010ffff"):
        assert name_undrawn(f"a{mark}b") == f"a[U+{ord(mark):04X}]b"


def test_marks_stack_no_higher_than_two() -> None:
    assert name_undrawn("e\u0301\u0302 e\u0301") == "e\u0301\u0302 e\u0301"
    assert name_undrawn("e" + "\u0301" * 500) == "e\u0301\u0301[U+0301 U+0301 U+0301 U+0301 and 494 more]"


def test_every_cut_of_the_text_face_draws_the_same_characters() -> None:
    drawn = {path.stem: frozenset(TTFont(path).getBestCmap()) for path in sorted(font_folder().glob("Inter-*.ttf"))}

    assert len(drawn) == 5
    assert set(drawn.values()) == {drawn[TEXT_FACE]}
