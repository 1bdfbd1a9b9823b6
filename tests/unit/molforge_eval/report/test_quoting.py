from __future__ import annotations

from molforge_eval.report.quoting import quote


def test_marks_that_turn_text_around_are_spelled_out() -> None:
    shown = quote("exe.\N{RIGHT-TO-LEFT OVERRIDE}gnp\N{RIGHT-TO-LEFT MARK}\N{ZERO WIDTH SPACE}", 60)

    assert shown == "exe.\\u202egnp\\u200f\\u200b"


def test_a_page_long_text_is_cut_and_its_length_told() -> None:
    assert quote("a" * 10_000, 10) == "aaaaaaaaaa… (10000 characters)"


def test_lines_are_joined_and_nothing_is_nothing() -> None:
    assert quote("a\r\n\tb\n\n c", 20) == "a b c"
    assert quote("", 20) == ""


def test_text_beyond_what_is_read_is_never_dropped_without_a_word() -> None:
    assert quote(" " * 200 + "end", 10) == "… (203 characters)"
