"""The rows of a run that a number is made from: file, line, pointer, and what stands there.

Words after `take` in a rule: `all` lines; `points`, the lines that carry the column; `first` and `last`, those of its
first or last tenth; `ends`, the last line of each training episode; `paid`, those with a reward and a score; `early`
and `late`, the lines of the first and the last third of the optimizer steps, `early ends` and `late ends` the ends
among them; `values`, the lines that carry the field, `done values` those of them that end an episode; `first third` and
`last third`, by the order of the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any, NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.json_positions import lines_of_pointers
from molforge_eval.ladder import ladder
from molforge_eval.ledger import Ledger
from molforge_eval.old_trainer_log import Form
from molforge_eval.record_files import read_json
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.learning import EPISODE_COLUMNS, episode_ends
from molforge_eval.report.number_book import Number
from molforge_eval.report.number_rules import MEAN, PointRule, RowRule, rule_of
from molforge_eval.report.quoting import quote
from molforge_eval.report.series import Curve, Point, curve_of, thirds, trainer_rows
from molforge_eval.run_directory import RunDirectory

ARMS = {"before": layout.BEFORE, "after": layout.AFTER}
CURVES_OF_ENDS = {**EPISODE_COLUMNS, "unfinished": "ended_by", "budget_left": "remaining_budget"}
"""Curves over the last lines of training episodes, and the column of each."""
CURVES_OF_LINES = {"vetoed": "governance_status", "invalid": "status"}
_ROLLOUT_CURVES = {**CURVES_OF_ENDS, **CURVES_OF_LINES}
LADDER_TABLE = "molforge_eval/data/ladder.json"
TABLES = {"reference policies": LADDER_TABLE}
"""Sources that are tables of the product, and the file of each."""
SHIPPED = frozenset(TABLES.values())
_OWN_FIELDS = frozenset({"final_score", "submission_score", "progress_score"})
_METRIC = "metric "
_COLUMN = "column "
_COLUMNS = re.compile(r"columns? ([^,]+(?:, [^,0-9 ]+)*?)(?:, lines .*)?$")
_RESUMES = "resumes"
_HISTORY = "log_history"
_TASK_KEY = re.compile(r"task-(\d+)")


class Row(NamedTuple):
    """One value that a number is made from."""

    file: str
    line: int | None
    """Line of the file, from 1; `None` until a JSON file was looked through for it."""
    pointer: str
    """What is read there: JSON pointer in the file, or in the line of a log; empty for the whole of it."""
    value: Any


class NumberRows:
    """Finds the rows of numbers.

    Args:
        run: The run.
        evidence: Its evidence, whose ids and labels the rules speak of.
    """

    def __init__(self, run: RunDirectory, evidence: Evidence) -> None:
        """Read nothing yet."""
        self._run, self._evidence = run, evidence
        self._values: dict[str, Any] = {}
        self._frames: dict[str, pl.DataFrame] = {}

    def of(self, number: Number) -> list[Row]:
        """List the rows that a number is made from itself; those of the numbers that it needs are theirs.

        Lines of JSON files are not looked up here: see `located`.
        """
        rule = rule_of(number.id)
        rows: list[Row] = []
        if rule is None or rule.sources or not (rule.has_rows() or rule.needs):
            rows = [row for source in number.sources for row in self._of_source(source.file, source.part)]
            rows += _of_ladder(number.id) if any(source.file in TABLES for source in number.sources) else ()
        if rule is None:
            return rows
        rows += [row for arm in rule.evaluations for row in self._of_episodes(ARMS[arm], rule)]
        for place in rule.pointers:
            file, _, pointer = place.partition("#")
            rows += self._of_source(file, pointer)
        rows += self._of_log(rule) if rule.log else ()
        return list({(row.file, row.line, row.pointer): row for row in rows}.values())

    def of_point(self, rule: PointRule, point: Point, before: int) -> list[Row]:
        """List the rows that one point of a curve is made from.

        Args:
            rule: The rule of the curve.
            point: The point.
            before: Step of the point before it; -1 for the first.
        """
        if rule.take == "row":
            rows = self._run.trainer_log.filter(pl.col("line") == point.line)
            return list(self._lines(self.trainer_file(), rows, (rule.field,)))
        lines = take_point(self._run.rollouts, rule, point.step, before)
        return list(self._lines(layout.ROLLOUTS, lines, (rule.field,)))

    def located(self, rows: Sequence[Row]) -> list[Row]:
        """Say on which line of its file each row stands."""
        wanted: dict[str, list[str]] = {}
        for row in rows:
            if row.line is None:
                wanted.setdefault(row.file, []).append(row.pointer)
        lines: dict[str, Mapping[str, int]] = {}
        for file, pointers in wanted.items():
            data = shipped_bytes(file) if file in SHIPPED else self._read(file)
            lines[file] = {} if data is None else lines_of_pointers(data, pointers)
        return [row if row.line else row._replace(line=lines[row.file].get(row.pointer)) for row in rows]

    def _read(self, file: str) -> bytes | None:
        try:
            return self._run.files.read(file, at_most=self._run.limits.file_bytes)
        except OSError:
            return None

    def trainer_file(self) -> str:
        """Name the file that the trainer's rows were read from."""
        old, stand_in = self._run.old, self._run.stand_in
        if old is not None and old.trainer_source is not None:
            return old.trainer_source
        return layout.TRAINER_LOG if stand_in is None else stand_in.source

    def _trainer_form(self) -> Form:
        old, stand_in = self._run.old, self._run.stand_in
        if old is not None:
            return old.trainer_form
        return "lines" if stand_in is None else stand_in.form

    def _of_source(self, file: str, part: str) -> Iterator[Row]:
        """Read a source as the number book names it: a pointer, or columns of a log."""
        if file not in self._run.files:
            return
        if part.startswith("/"):
            for pointer, value in _walk(self._value(file), part.split("/")[1:], ""):
                yield Row(file, None, pointer, value)
            return
        found = _COLUMNS.match(part)
        fields = () if found is None else tuple(found[1].split(", "))
        yield from self._lines(file, self._table(file), fields)

    def _of_episodes(self, file: str, rule: RowRule) -> Iterator[Row]:
        value = self._value(file) if file in self._run.files else None
        episodes = value.get("episodes") if isinstance(value, Mapping) else None
        part = self._deciding_part() if rule.part == "decides" else rule.part
        task = None if rule.task is None else self._task_of(rule.task)
        for number, episode in enumerate(episodes if isinstance(episodes, list) else ()):
            if not isinstance(episode, Mapping) or (part is not None and episode.get("part") != part):
                continue
            if task is not None and episode.get("scenario_id") != task:
                continue
            for field in rule.fields:
                for pointer, found in _walk(episode, self._path(field), f"/episodes/{number}"):
                    yield Row(file, None, pointer, found)

    def _path(self, field: str) -> list[str]:
        if not field.startswith(_METRIC):
            return field.split("/")
        key = field.removeprefix(_METRIC)
        label = next((row.label for row in self._evidence.metrics if row.key == key), key)
        if self._run.format_version == 0:
            return label.split(".")
        return [label] if label in _OWN_FIELDS else ["scores", label]

    def _deciding_part(self) -> str | None:
        return None if self._run.plan is None else self._run.plan.decision.part

    def _task_of(self, key: str) -> str:
        """Give the scenario that an id names; one whose name cannot stand in an id is named by its number."""
        found = _TASK_KEY.fullmatch(key)
        if found is None:
            return key
        listed = self._listed_tasks
        return listed[int(found[1])] if int(found[1]) < len(listed) else key

    @cached_property
    def _listed_tasks(self) -> list[str]:
        if self._run.plan is not None:
            parts = self._run.plan.parts
            wanted = [part for part in parts if part.name == self._deciding_part()] or parts
            return [*dict.fromkeys(task for part in wanted for task in part.tasks)]
        values = [self._value(file) for file in ARMS.values() if file in self._run.files]
        episodes = [
            episode
            for value in values
            if isinstance(value, Mapping) and isinstance(value.get("episodes"), list)
            for episode in value["episodes"]
        ]
        named = [episode.get("scenario_id") for episode in episodes if isinstance(episode, Mapping)]
        return [*dict.fromkeys(name for name in named if isinstance(name, str))]

    def _of_log(self, rule: RowRule) -> Iterator[Row]:
        log, column = rule.log or "", self._column(rule.log or "")
        if log == "rollouts" or log in _ROLLOUT_CURVES:
            fields = (_ROLLOUT_CURVES[log],) if log in _ROLLOUT_CURVES else rule.fields
            yield from self._lines(layout.ROLLOUTS, self._taken(rule, fields), fields)
        elif log.startswith(_RESUMES):
            resumed = self._run.every_trainer_row.filter(pl.col("type") == "resume")
            place = log.removeprefix(_RESUMES).strip()
            yield from self._lines(layout.TRAINER_LOG, resumed[int(place)] if place else resumed, rule.fields)
        elif log == "trainer":
            yield from self._lines(self.trainer_file(), self._run.trainer_log, rule.fields)
        else:
            lines = _tenth([p.line for p in self._curve(column).finite()], rule.take)
            if rule.take == "points":
                lines = [point.line for point in self._curve(column).points]
            frame = self._run.trainer_log.filter(pl.col("line").is_in(lines))
            yield from self._lines(self.trainer_file(), frame, (column,))

    def _curve(self, column: str) -> Curve:
        return curve_of(trainer_rows(self._run.trainer_log, self._run.findings, self.trainer_file()), column)

    def _column(self, name: str) -> str:
        if not name.startswith(_COLUMN) or self._evidence.old is None:
            return name
        key = name.removeprefix(_COLUMN)
        label = next((column.label for column in self._evidence.old.columns if column.key == key), key)
        return next((found for found in self._run.trainer_log.columns if quote(found, len(label)) == label), label)

    def _taken(self, rule: RowRule, fields: Sequence[str]) -> pl.DataFrame:
        key = f"{rule.take} {' '.join(fields)}"
        if key not in self._frames:
            self._frames[key] = take_lines(self._run.rollouts, rule.take or "all", fields)
        return self._frames[key]

    def _table(self, file: str) -> pl.DataFrame:
        return self._run.rollouts if file == layout.ROLLOUTS else self._run.trainer_log

    def _lines(self, file: str, frame: pl.DataFrame, fields: Sequence[str]) -> Iterator[Row]:
        form = "lines" if file == layout.ROLLOUTS else self._trainer_form()
        head = f"/{_HISTORY}" if form == "state" else ""
        known = [field for field in fields if field in frame.columns]
        columns = [frame[field].to_list() for field in known]
        for place, line in enumerate(frame["line"].to_list()):
            at, number = ("", line) if form == "lines" else (f"{head}/{line - 1}", None)
            if not known:
                yield Row(file, number, at, None)
            for field, values in zip(known, columns, strict=True):
                yield Row(file, number, f"{at}/{field}", values[place])

    def _value(self, file: str) -> Any:
        if file not in self._values:
            self._values[file] = read_json(self._run.files, file, Ledger(), self._run.limits).value
        return self._values[file]


def take_lines(rollouts: pl.DataFrame, take: str, fields: Sequence[str]) -> pl.DataFrame:
    """Take the lines of the rollout log that a rule names; the words are explained at the head of this module."""
    third = len(rollouts) // 3
    if take in {"first", "last", "points"}:
        lines = rollouts if fields[0] in CURVES_OF_LINES.values() else episode_ends(rollouts)
        drawn = lines if lines is rollouts else lines.filter(pl.col(fields[0]).is_not_null())
        return drawn.filter(pl.col("trainer_step").is_in(_tenth(sorted(set(drawn["trainer_step"].to_list())), take)))
    if take.startswith(("early", "late")):
        early, late = thirds(rollouts)
        chosen = early if take.startswith("early") else late
        return episode_ends(chosen) if take.endswith("ends") else chosen
    if take in {"first third", "last third"}:
        halves = (rollouts.head(third), rollouts.tail(third)) if third else (rollouts, rollouts.clear())
        return halves[take == "last third"]
    if take == "ends":
        return episode_ends(rollouts)
    if take == "paid":
        return rollouts.filter(pl.col("training_reward").is_not_null() & pl.col("episode_score").is_not_null())
    if take in {"values", "done values"}:
        known = rollouts.filter(pl.col(fields[0]).is_not_null())
        return known.filter(pl.col("done").fill_null(value=False)) if take == "done values" else known
    return rollouts


def take_point(rollouts: pl.DataFrame, rule: PointRule, step: int, before: int) -> pl.DataFrame:
    """Take the lines of the rollout log that a point is made from; the words are explained beside the rules."""
    known = rollouts.filter(pl.col(rule.field).is_not_null())
    match rule.take:
        case "ends":
            ends = episode_ends(rollouts).filter(pl.col("trainer_step") == step)
            return ends.filter(pl.col(rule.field).is_not_null())
        case "until":
            return known.filter(pl.col("trainer_step") <= step)
        case "stretch":
            return known.filter((pl.col("line") > before) & (pl.col("line") <= step))
        case "done stretch":
            done = known.filter(pl.col("done").fill_null(value=False))
            return done.filter((pl.col("line") > before) & (pl.col("line") <= step))
        case _:
            return rollouts.filter(pl.col("trainer_step") == step)


def shipped_bytes(path: str) -> bytes:
    """Read a file of the product by its path in the repository."""
    package, _, rest = path.partition("/")
    return resources.files(package).joinpath(rest).read_bytes()


def _of_ladder(number_id: str) -> Iterator[Row]:
    """Yield what the table of reference policies has for a rung; nothing for a number that is none."""
    _, task, name = number_id.split(".")
    for place, rung in enumerate(ladder().rungs):
        if rung.name == name and task == MEAN:
            yield Row(LADDER_TABLE, None, f"/rungs/{place}/mean", rung.mean)
        elif rung.name == name:
            for number, found in enumerate(rung.tasks):
                if found.scenario_id == task:
                    yield Row(LADDER_TABLE, None, f"/rungs/{place}/tasks/{number}/score", found.score)


def _tenth(items: list[int], take: str | None) -> list[int]:
    tenth = max(1, len(items) // 10)
    if take == "first":
        return items[:tenth]
    return items[-tenth:] if take == "last" else items


def _walk(value: Any, steps: Sequence[str], at: str) -> Iterator[tuple[str, Any]]:
    """Follow a path whose `*` stands for every item; what is not there yields nothing."""
    if not steps:
        yield at, value
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        items = enumerate(value) if isinstance(value, list) else ()
        for number, item in items:
            yield from _walk(item, rest, f"{at}/{number}")
    elif isinstance(value, Mapping) and step in value:
        spelled = step.replace("~", "~0").replace("/", "~1")
        yield from _walk(value[step], rest, f"{at}/{spelled}")
    elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
        yield from _walk(value[int(step)], rest, f"{at}/{step}")
