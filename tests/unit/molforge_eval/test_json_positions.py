"""The line of a JSON pointer in a file."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from molforge_eval.json_positions import lines_of_pointers
from molforge_eval.strict_json import escape_step

KEYS = st.text(st.sampled_from('ab/~"\\ {[:,é'), max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\{}[]:,\n'), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=15,
)


def spell(value: object, pointer: str = "", line: int = 1) -> tuple[str, dict[str, int]]:
    """Write a value with each item on its own line, and note the line of each pointer."""
    places = {pointer: line}
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value), places
    items = value.items() if isinstance(value, dict) else ((str(number), item) for number, item in enumerate(value))
    marks = "{}" if isinstance(value, dict) else "[]"
    parts = []
    for key, item in items:
        line += 1
        text, inner = spell(item, f"{pointer}/{escape_step(key)}", line)
        line += text.count("\n")
        places |= inner
        parts.append(f"{json.dumps(key)}: {text}" if isinstance(value, dict) else text)
    return marks[0] + "\n" + ",\n".join(parts) + "\n" + marks[1], places


@given(VALUES)
def test_every_pointer_of_a_value_is_found_on_its_line(value: object) -> None:
    text, places = spell(value)

    assert lines_of_pointers(text.encode(), places) == places


def test_a_pointer_that_leads_nowhere_has_the_line_of_what_is_around_it() -> None:
    text = b'{\n "a": [\n  1,\n  {"b": 2}\n ]\n}'

    assert lines_of_pointers(text, ["/a/1/c", "/a/9", "/z"]) == {"/a/1/c": 4, "/a/9": 2, "/z": 1}


def test_a_broken_text_still_gives_what_stands_before_the_fault() -> None:
    assert lines_of_pointers(b'{\n "a": 1,\n "b": ]]}', ["/a"]) == {"/a": 2}


@given(st.binary(max_size=200), st.lists(st.text("/ab0", max_size=6), max_size=4))
def test_no_bytes_make_the_search_raise(data: bytes, pointers: list[str]) -> None:
    assert all(line >= 1 for line in lines_of_pointers(data, pointers).values())


def test_a_string_that_is_never_closed_is_passed_in_linear_time() -> None:
    assert lines_of_pointers(b'{"a":\n"' + b'\\"' * 500_000, ["/a", "/b"]) == {"/a": 2, "/b": 1}
