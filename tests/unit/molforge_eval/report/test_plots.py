from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest
from evidence_builder import edit_line
from PIL import Image

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.canonical import digest
from molforge_eval.report.plots import draw_plots


def table_of(run: Path) -> dict:
    return {plot["path"]: plot for plot in orjson.loads((run / layout.PLOT_DATA).read_bytes())["plots"]}


def test_the_run_has_the_six_pictures_with_labelled_axes(built_run) -> None:
    table = table_of(built_run)

    assert [path.removeprefix("plots/").removesuffix(".png") for path in table] == [
        "action_distribution",
        "eval_before_after",
        "final_score_curve",
        "grad_norm_curve",
        "loss_curve",
        "reward_curve",
    ]
    assert all(plot["x_label"] and plot["y_label"] and plot["title"] and plot["caption"] for plot in table.values())


def test_a_picture_carries_the_run_and_the_digest_of_its_points(built_run) -> None:
    for path, plot in table_of(built_run).items():
        with Image.open(built_run / path) as picture:
            assert picture.text == {
                "molforge:run_id": "run-0123456789ab",
                "molforge:data_sha256": digest([plot["columns"], plot["rows"]]),
                "Software": "molforge-evidence",
                "Title": plot["title"],
            }
            assert picture.width > 900


def test_drawing_twice_gives_the_same_bytes(built_run, run_copy) -> None:
    shutil.rmtree(run_copy / "plots")
    draw_plots(run_copy)

    for path in (built_run / "plots").iterdir():
        assert (run_copy / "plots" / path.name).read_bytes() == path.read_bytes()


def test_a_number_that_is_not_finite_is_a_gap_and_the_caption_counts_it(run_copy) -> None:
    edit_line(run_copy, 2, layout.TRAINER_LOG, loss=None, non_finite={"loss": "NaN"})
    draw_plots(run_copy)
    plot = table_of(run_copy)["plots/loss_curve.png"]

    assert [row[2] is None for row in plot["rows"]] == [False, True, False, False]
    assert "1 without a finite value" in plot["caption"]


def test_a_missing_evaluation_has_no_bar(run_copy) -> None:
    (run_copy / layout.AFTER).unlink()
    draw_plots(run_copy)
    plot = table_of(run_copy)["plots/eval_before_after.png"]

    assert {row[1] for row in plot["rows"]} == {"before"}
    assert plot["sources"] == [layout.BEFORE]


def test_without_evaluations_that_picture_is_not_drawn(run_copy) -> None:
    shutil.rmtree(run_copy / "plots")
    for path in layout.EVALUATIONS:
        (run_copy / path).unlink()
    draw_plots(run_copy)

    assert not (run_copy / "plots/eval_before_after.png").exists()
    assert (run_copy / "plots/reward_curve.png").exists()


def test_without_a_manifest_nothing_is_drawn(run_copy) -> None:
    (run_copy / layout.MANIFEST).unlink()

    with pytest.raises(UnreadableError, match="run_manifest"):
        draw_plots(run_copy)
