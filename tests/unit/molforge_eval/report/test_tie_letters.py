from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from molforge_eval.report.tie_letters import find_ties, letter_of

RUNS = tuple("ABCDEFG")
PAIRS = tuple(combinations(RUNS, 2))


def test_without_a_pair_told_apart_all_share_one_letter() -> None:
    assert find_ties(["A", "B", "C"], []) == (("A", "B", "C"),)


def test_with_every_pair_told_apart_no_two_share_a_letter() -> None:
    assert find_ties(["A", "B", "C"], list(combinations("ABC", 2))) == (("A",), ("B",), ("C",))


def test_no_run_at_all_gives_no_tie() -> None:
    assert find_ties([], []) == ()


@given(apart=st.sets(st.sampled_from(PAIRS)))
def test_two_runs_share_a_letter_just_when_they_were_not_told_apart(apart) -> None:
    ties = find_ties(RUNS, sorted(apart))

    for first, second in PAIRS:
        assert any(first in tie and second in tie for tie in ties) == ((first, second) not in apart)
    assert {run for tie in ties for run in tie} == set(RUNS)


@given(apart=st.sets(st.sampled_from(PAIRS)), order=st.permutations(RUNS))
def test_the_sets_do_not_depend_on_the_order_in_which_runs_are_named(apart, order) -> None:
    named = {frozenset(tie) for tie in find_ties(order, sorted(apart))}

    assert named == {frozenset(tie) for tie in find_ties(RUNS, sorted(apart, reverse=True))}


def test_letters_go_on_after_z() -> None:
    assert [letter_of(number) for number in (0, 1, 25, 26, 27, 52)] == ["a", "b", "z", "aa", "ab", "ba"]
