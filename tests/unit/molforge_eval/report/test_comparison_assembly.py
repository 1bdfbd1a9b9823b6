from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from molforge_env.errors import UnreadableError
from molforge_eval.canonical import file_bytes
from molforge_eval.catalogue import finding
from molforge_eval.ladder import ladder
from molforge_eval.report.checking import check_run
from molforge_eval.report.comparison_assembly import assemble_comparison, name_tasks
from molforge_eval.report.comparison_chart import WIDE, comparison_chart
from molforge_eval.report.comparison_evidence import ComparisonEvidence
from molforge_eval.report.comparison_pages import render_comparison_page
from molforge_eval.report.rivals import REFERENCE, Entry, enter_runs
from molforge_eval.report.vega_lite import specification_of
from molforge_eval.run_directory import load

ERROR = finding("SCORE_DIFFERS", "final_score is 0.9, the episode gives 0.1", file="eval_after_training.json")


@pytest.fixture(scope="module")
def compare():
    def make(*entries: Entry) -> ComparisonEvidence:
        return assemble_comparison(enter_runs(entries), ladder())

    return make


@pytest.fixture(scope="module")
def other_plan(plan):
    """The plan with other sampled decoding."""

    def make(**decoding):
        parts = tuple(
            part.model_copy(update={"decoding": part.decoding.model_copy(update=decoding)})
            if part.name == "sampled"
            else part
            for part in plan.parts
        )
        return plan.model_copy(update={"parts": parts})

    return make


def test_a_clear_difference_tells_two_runs_apart_and_which_is_higher(compare, entry) -> None:
    evidence = compare(entry(1, 0.3), entry(2, 0.7))

    assert evidence.outcome == "told apart"
    assert evidence.pairs[0].meeting == "lower"
    assert evidence.number("pair.r1-r2.mean.difference").value == pytest.approx(-0.4, abs=0.02)
    assert evidence.number("pair.r1-r2.mean.seeds").value == 8
    assert [run.letters for run in evidence.runs] == ["a", "b"]


def test_the_order_of_naming_turns_the_sign_and_nothing_else(compare, entry) -> None:
    one, other = compare(entry(1, 0.3), entry(2, 0.7)), compare(entry(2, 0.7), entry(1, 0.3))
    at = "pair.r1-r2.mean"

    assert other.pairs[0].meeting == "higher"
    assert one.value(f"{at}.difference") == pytest.approx(-other.value(f"{at}.difference"))
    assert one.value(f"{at}.holm") == other.value(f"{at}.holm")
    assert one.value(f"{at}.low") == pytest.approx(-other.value(f"{at}.high"))


def test_runs_that_are_not_told_apart_share_a_letter_and_have_no_order(compare, entry, scored) -> None:
    evidence = compare(entry(1, scored(0.5, spread=0.3)), entry(2, scored(0.52, spread=0.3, turn=3)), entry(3, 0.9))

    assert [run.letters for run in evidence.runs] == ["a", "a", "b"]
    assert [tie.runs for tie in evidence.ties] == [("r1", "r2"), ("r3",)]
    assert evidence.outcome == "partly told apart"


def test_two_runs_within_the_margin_are_alike(compare, entry) -> None:
    assert compare(entry(1, 0.5), entry(2, 0.505)).pairs[0].meeting == "alike"


def test_p_values_are_adjusted_over_all_pairs_by_holm(compare, entry) -> None:
    evidence = compare(entry(1, 0.3), entry(2, 0.6), entry(3, 0.9))
    raw = [evidence.value(f"pair.{pair.key}.mean.p") for pair in evidence.pairs]

    assert raw == [2 / 2**8] * 3
    assert [evidence.value(f"pair.{pair.key}.mean.holm") for pair in evidence.pairs] == [3 * 2 / 2**8] * 3
    assert evidence.value("pairs.cells") == 9
    assert evidence.value("pair.r1-r2.level_0_easy.holm") == min(1.0, 9 * 2 / 2**8)


def test_a_pair_of_too_few_seeds_is_named_and_the_others_are_told_apart(compare, entry, scored, plan) -> None:
    parts = tuple(
        part.model_copy(update={"seeds": part.seeds[:4]}) if part.name == "sampled" else part for part in plan.parts
    )
    short = scored(0.9, played=plan.model_copy(update={"parts": parts}))
    kept = tuple(e for e in short.episodes if e.part == "greedy" or e.seed in parts[1].seeds)
    evidence = compare(entry(1, 0.1), entry(2, 0.5), entry(3, short.model_copy(update={"episodes": kept})))

    assert evidence.outcome == "partly told apart"
    assert evidence.note == "some pairs cannot be told apart"
    assert evidence.short_pairs == ("r1-r3", "r2-r3")
    assert evidence.value("compared_by.fewest_seeds") == 6


def test_too_few_seeds_for_so_many_pairs_are_said_to_be_too_few(compare, entry) -> None:
    entries = [entry(number, 0.1 * number) for number in range(1, 8)]
    evidence = compare(*entries)

    assert evidence.outcome == "not told apart"
    assert evidence.note == "no pair can be told apart"
    assert evidence.value("pairs.smallest_p") == 21 * 2 / 2**8
    verdict = render_comparison_page(evidence, {}).decode().partition('<div class="verdict')[2].partition("</div>")[0]
    assert "Nothing could have been told apart, whatever the scores" in verdict
    assert evidence.number("pairs.smallest_p").text in verdict


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"rules_version": "molforge-rules/2"}, "rules_version"),
        ({"backend_fingerprint": "0" * 64}, "backend_fingerprint"),
    ],
)
def test_what_is_scored_otherwise_is_refused_with_its_key(compare, entry, scored, changes, key) -> None:
    evidence = compare(entry(1, 0.3), entry(2, scored(0.7).model_copy(update=changes)))

    assert evidence.outcome == "nothing compared"
    assert evidence.pairs[0].meeting == "refused"
    assert [unlike.key for unlike in evidence.pairs[0].differing] == [key]
    assert evidence.value("pair.r1-r2.mean.difference") is None
    assert evidence.value("run.r2.after") is not None


def test_every_key_in_which_two_plans_differ_is_listed_with_both_values(compare, entry, scored, other_plan) -> None:
    unlike = other_plan(temperature=0.7, top_p=0.9).model_copy(update={"turn_limit": 5})
    evidence = compare(entry(1, 0.3), entry(2, scored(0.7, played=unlike)))
    found = {item.key: (item.first, item.second) for item in evidence.pairs[0].differing}

    assert found == {
        "plan.turn_limit": ("11", "5"),
        "plan.parts.sampled.decoding.temperature": ("1", "0.7"),
        "plan.parts.sampled.decoding.top_p": ("1", "0.9"),
    }


def test_a_refused_pair_leaves_the_others_compared_and_shares_no_letter(compare, entry, scored, other_plan) -> None:
    evidence = compare(
        entry(1, 0.3),
        entry(2, scored(0.7, played=other_plan(temperature=0.7))),
        entry(3, 0.6),
        entry(4, scored(0.3, turn=2)),
    )

    assert [pair.meeting for pair in evidence.pairs] == [
        "refused", "lower", "alike", "refused", "refused", "higher",
    ]  # fmt: skip
    assert [(run.league, run.letters) for run in evidence.runs] == [(0, "a"), (1, ""), (0, "b"), (0, "a")]


def test_another_rule_of_decision_and_other_greedy_decoding_bar_no_sampled_difference(compare, entry, scored, plan):
    rule = plan.decision.model_copy(update={"alpha": 0.01})
    greedy = plan.parts[0].decoding.model_copy(update={"max_new_tokens": 99})
    parts = (plan.parts[0].model_copy(update={"decoding": greedy}), *plan.parts[1:])
    other = plan.model_copy(update={"decision": rule, "parts": parts})

    assert compare(entry(1, 0.3), entry(2, scored(0.7, played=other))).pairs[0].meeting == "lower"


def test_only_the_seeds_that_both_planned_are_paired(compare, entry, scored, plan) -> None:
    parts = tuple(
        part.model_copy(update={"seeds": part.seeds[:6]}) if part.name == "sampled" else part for part in plan.parts
    )
    fewer = scored(0.7, played=plan.model_copy(update={"parts": parts}))
    kept = tuple(e for e in fewer.episodes if e.part == "greedy" or e.seed in parts[1].seeds)
    evidence = compare(entry(1, 0.3), entry(2, fewer.model_copy(update={"episodes": kept})))

    assert evidence.value("pair.r1-r2.mean.common") == evidence.value("pair.r1-r2.mean.seeds") == 6
    assert evidence.pairs[0].meeting == "lower"


def test_without_a_seed_in_common_nothing_is_compared_and_the_seeds_are_the_key(compare, entry, scored, plan) -> None:
    parts = tuple(
        part.model_copy(update={"seeds": tuple(seed + 900 for seed in part.seeds)}) if part.name == "sampled" else part
        for part in plan.parts
    )
    moved = scored(0.7, played=plan.model_copy(update={"parts": parts}))
    episodes = tuple(e.model_copy(update={"seed": e.seed + 900}) if e.part == "sampled" else e for e in moved.episodes)
    evidence = compare(entry(1, 0.3), entry(2, moved.model_copy(update={"episodes": episodes})))

    assert evidence.pairs[0].meeting == "refused"
    assert [item.key for item in evidence.pairs[0].differing] == ["plan.parts.sampled.seeds"]


def test_a_model_of_another_base_may_be_spoken_to_otherwise_and_one_of_the_same_may_not(compare, entry, scored):
    policy = scored(0.7).policy
    unlike = policy.model_copy(update={"dtype": "bfloat16", "base_model_sha256": "2" * 64})
    other = scored(0.7).model_copy(update={"policy": unlike})
    same = scored(0.7).model_copy(update={"policy": policy.model_copy(update={"dtype": "bfloat16"})})

    assert compare(entry(1, 0.3), entry(2, other)).pairs[0].meeting == "lower"
    refused = compare(entry(1, 0.3), entry(2, same)).pairs[0]
    assert [item.key for item in refused.differing] == ["policy.dtype"]


def test_a_run_with_errors_is_shown_with_its_level_and_its_scores_are_withheld(compare, entry) -> None:
    evidence = compare(entry(1, 0.3), entry(2, 0.9, findings=(ERROR,), level="E1"), entry(3, 0.6))
    marked = evidence.run("r2")

    assert (marked.state, marked.level, marked.error_codes) == ("withheld", "E1", ("SCORE_DIFFERS",))
    assert "SCORE_DIFFERS" in " ".join(marked.reasons)
    assert {evidence.value(f"run.r2.{side}") for side in ("before", "after", "difference")} == {None}
    assert evidence.value("run.r2.level_0_easy.after") is None
    assert [pair.key for pair in evidence.pairs] == ["r1-r3"]


def test_a_run_below_level_e2_is_withheld_without_a_finding_too(compare, entry) -> None:
    assert compare(entry(1, 0.3), entry(2, 0.9, level="E1")).run("r2").state == "withheld"


def test_a_run_without_an_evaluation_after_training_is_listed_and_compared_with_nobody(compare, entry) -> None:
    evidence = compare(entry(1, 0.3), entry(2, None), entry(3, 0.6))

    assert evidence.run("r2").state == "incomplete"
    assert "after training is missing" in evidence.run("r2").reasons[0]
    assert [pair.key for pair in evidence.pairs] == ["r1-r3"]


def test_the_same_run_named_twice_is_one_run(compare, entry) -> None:
    again = entry(1, 0.3)
    evidence = compare(entry(1, 0.3), again, entry(2, 0.6))

    assert (evidence.run("r2").state, evidence.run("r2").same_as) == ("repeated", "r1")
    assert "byte for byte" in evidence.run("r2").reasons[0]
    assert [pair.key for pair in evidence.pairs] == ["r1-r3"]
    assert evidence.run("r1").label != evidence.run("r2").label


def test_a_broken_copy_that_is_named_first_takes_no_scores_away(compare, entry) -> None:
    evidence = compare(entry(1, 0.9, findings=(ERROR,), level="E1"), entry(1, 0.3), entry(2, 0.6))

    assert [run.state for run in evidence.runs] == ["withheld", "compared", "compared"]


def test_a_run_whose_score_is_not_shown_is_not_drawn(compare, entry) -> None:
    evidence = compare(entry(1, 0.3), entry(2, None))
    tables = specification_of(comparison_chart(evidence, size=WIDE))["datasets"].values()
    label = evidence.run("r2").label
    rows = [row for table in tables for row in table if row.get("row") == label]

    assert {evidence.value(f"run.r2.{side}") for side in ("before", "after", "difference")} == {None}
    assert "the run is incomplete" in str(evidence.number("run.r2.before").reason)
    assert rows == [{"row": label, "text": "no score"}]


def test_two_states_of_one_run_and_two_evaluations_of_one_adapter_are_one_run_too(compare, entry) -> None:
    first = entry(1, 0.3)
    state = first._replace(checked=first.checked._replace(root_sha256="f" * 64))
    other = entry(2, 0.6)
    manifest = other.checked.run.manifest.model_copy(
        update={"output_adapter": first.checked.run.manifest.output_adapter}
    )
    twin = other._replace(checked=other.checked._replace(run=dataclasses.replace(other.checked.run, manifest=manifest)))
    evidence = compare(first, state, twin)

    assert "two states of one run" in evidence.run("r2").reasons[0]
    assert "evaluated again" in evidence.run("r3").reasons[0]
    assert evidence.outcome == "nothing compared"


def _with_id_of(entry: Entry, other: Entry) -> Entry:
    run = entry.checked.run
    manifest = run.manifest.model_copy(update={"run_id": other.checked.run.manifest.run_id})
    return entry._replace(checked=entry.checked._replace(run=dataclasses.replace(run, manifest=manifest)))


@pytest.mark.parametrize("is_first", [True, False])
def test_an_id_that_was_copied_takes_no_scores_away_and_both_are_told(compare, entry, is_first) -> None:
    sound = entry(1, 0.3)
    thief = _with_id_of(entry(2, 0.9), sound)
    evidence = compare(*((thief, sound) if is_first else (sound, thief)), entry(3, 0.6))

    assert [run.state for run in evidence.runs] == ["compared"] * 3
    assert "r2 has the same run id and other records" in evidence.run("r1").reasons[0]
    assert "r1 has the same run id and other records" in evidence.run("r2").reasons[0]
    assert evidence.run("r3").reasons == ()


def test_who_stands_for_another_state_of_itself_is_told_so_and_a_plain_copy_is_not(compare, entry) -> None:
    first = entry(1, 0.3)
    state = first._replace(checked=first.checked._replace(root_sha256="f" * 64))

    assert "r2 has the same run id" in compare(first, state, entry(2, 0.6)).run("r1").reasons[0]
    assert compare(first, first, entry(2, 0.6)).run("r1").reasons == ()


def test_every_task_has_a_key_of_its_own_whatever_it_is_called() -> None:
    tasks = ("a b", "task-0", "c/d", "task-1", "mean", "level_0_easy")
    keys = [task.key for task in name_tasks(tasks).values()]

    assert keys == ["task-2", "task-0", "task-3", "task-1", "task-4", "level_0_easy"]


def test_a_run_that_cannot_be_read_stands_in_the_list(compare, entry) -> None:
    fault = UnreadableError("it holds no run", where="x", mend="Name another.")
    evidence = compare(entry(1, 0.3), Entry(Path("gone"), None, fault), entry(3, 0.6))

    assert (evidence.run("r2").state, evidence.run("r2").label) == ("unreadable", "gone")
    assert evidence.run("r2").reasons == ("it holds no run",)


def test_an_old_run_shows_its_means_and_what_its_layout_lacks(compare, entry, old_run) -> None:
    checked = check_run(load(old_run), replay=False)
    evidence = compare(entry(1, 0.3), Entry(old_run, checked, None), entry(3, 0.6))
    old = evidence.run("r2")

    assert (old.state, old.run_format, old.letters) == ("unpaired", 0, "")
    assert "seeds" in old.lacks
    assert evidence.value("run.r2.after") is not None
    assert evidence.value("run.r2.difference") is None
    assert [pair.key for pair in evidence.pairs] == ["r1-r3"]


def test_only_settings_that_differ_are_listed_each_with_its_values(compare, entry) -> None:
    evidence = compare(entry(1, 0.3, learning_rate=1e-3), entry(2, 0.6, learning_rate=3e-4))
    settings = {setting.key: setting.values for setting in evidence.settings if setting.kind == "setting"}

    assert settings == {"learning_rate": ("0.001", "0.0003")}


def test_a_setting_that_a_run_does_not_record_is_said_to_be_so_and_differs_from_nothing(compare, entry, old_run):
    checked = check_run(load(old_run), replay=False)
    manifest = checked.run.old.manifest
    assert manifest is not None
    evidence = compare(entry(1, 0.3, learning_rate=1e-3), Entry(old_run, checked, None), entry(3, 0.6, beta=0.5))
    settings = {setting.key: setting.values for setting in evidence.settings}

    assert settings["beta"] == ("0.02", None, "0.5")
    assert "loss_type" not in settings


def test_equal_runs_give_equal_bytes_and_the_model_reads_them_back(compare, entry) -> None:
    one, other = (compare(entry(1, 0.3), entry(2, 0.7), entry(3, 0.5)) for _ in range(2))

    assert file_bytes(one) == file_bytes(other)
    assert ComparisonEvidence.model_validate_json(file_bytes(one)) == one


def test_hostile_names_are_cut_and_told_apart(compare, entry) -> None:
    name = "<script>alert(1)</script>\u202e" + "x" * 500
    evidence = compare(entry(1, 0.3, name=name), entry(2, 0.6, name=name))

    assert "\u202e" not in evidence.run("r1").label
    assert evidence.run("r1").label.endswith("(r1)")
    assert evidence.run("r2").label.endswith("(r2)")


def test_no_two_runs_and_no_row_of_the_chart_have_one_label(compare, entry) -> None:
    names = ("a", "a", "a (r1)", REFERENCE)
    labels = [run.label for run in compare(*(entry(n, 0.1 * n, name=name) for n, name in enumerate(names, 1))).runs]

    assert len({REFERENCE, *labels}) == 5
