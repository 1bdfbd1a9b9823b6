"""Evidence of every kind of run, made without a file being written."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drawn_once import draw_once
from evidence_cases.building import Corpus, make_case
from evidence_cases.cases import EXAMPLES, read_case
from old_cases import CASES as OLD_CASES
from once_for_all import once_for_all
from packet_pages import HOSTILE, chromium, hostile_old_run, hostile_run, page_address
from playwright.sync_api import Browser
from warm_press import Press

from molforge_eval import layout
from molforge_eval.canonical import file_bytes
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.ladder import ladder
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan
from molforge_eval.report.assembly import Checked, assemble_evidence
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.paper import Enclosure, render_paper
from molforge_eval.report.rivals import Entry
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.sealing import compute_checksums
from molforge_eval.validation_result import ValidationResult
from molforge_eval.verdict import decide

CASES = ("improved", "no change shown", "regressed", "inconclusive", "incomplete", "withheld", "copies", "no plan")
Check = Callable[..., Checked]
Scored = Callable[..., Evaluation]


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    """A run of one line in the oldest layout, of which there is next to nothing to draw; the test may change it."""
    root = tmp_path / "run"
    (root / "logs").mkdir(parents=True)
    (root / layout.ROLLOUTS).write_bytes(b'{"timestamp": "t", "scenario_id": "level_0_easy", "reward": 0.1}\n')
    (root / layout.SUMMARY).write_bytes(b'{"num_episodes": 1}')
    return root


@pytest.fixture(scope="session")
def loaded_run(built_run: Path) -> RunDirectory:
    return load(built_run)


@pytest.fixture(scope="session")
def check(loaded_run: RunDirectory) -> Check:
    """Put evaluations of one's own into the built run and judge them."""
    sealed = compute_checksums(loaded_run.files, "run-0123456789ab")

    def make(
        before: Evaluation | None,
        after: Evaluation | None,
        plan: EvaluationPlan | None,
        findings: tuple[Finding, ...] = (),
        level: str = "E3",
        regenerated: int = 2,
    ) -> Checked:
        run = dataclasses.replace(loaded_run, before=before, after=after, plan=plan)
        counts = {
            "evaluation_episodes": 54,
            "training_episodes": 24,
            "episodes_replayed": 78,
            "steps_replayed": 400,
            "episodes_differing": 0,
        }
        if level == "E4":
            counts |= {"evaluations_regenerated": regenerated, "episodes_regenerated": 6, "turns_regenerated": 37}
        result = ValidationResult(
            run="run",
            run_id="run-0123456789ab",
            run_format=1,
            level=level,
            level_reason="level E4 needs the model itself to play again",
            root_sha256=sealed.root_sha256,
            counts=counts,
            findings=findings,
            omitted={},
        )
        verdict = None if plan is None else decide(before, after, plan, findings, ladder=ladder())
        return Checked(run, sealed.files, sealed.root_sha256, result, level >= "E3", verdict, ladder())

    return make


@pytest.fixture(scope="session")
def evidence_of(
    check: Check,
    plan: EvaluationPlan,
    random_evaluation: Evaluation,
    heuristic_evaluation: Evaluation,
    rescored: Callable[..., Evaluation],
) -> Callable[[str], Evidence]:
    """Assemble the evidence of one of `CASES`."""

    def scored(shift: float, spread: float) -> Evaluation:
        scores = {
            (part.name, task, seed): min(1.0, max(0.0, 0.5 + shift + spread * ((seed * 5 + place) % 7 - 3) / 3))
            for part in plan.parts
            for place, task in enumerate(part.tasks)
            for seed in part.seeds
        }
        return rescored(random_evaluation, scores)

    base = scored(0.0, 0.02)

    def make(case: str) -> Evidence:
        error = (
            finding("SCORE_DIFFERS", "final_score is 0.9, the episode gives 0.1", file="eval_after_training.json"),
        )
        cases = {
            "improved": lambda: check(base, scored(0.3, 0.05), plan),
            "no change shown": lambda: check(base, scored(0.0, 0.03), plan),
            "regressed": lambda: check(base, scored(-0.3, 0.05), plan),
            "inconclusive": lambda: check(base, scored(0.02, 0.4), plan),
            "incomplete": lambda: check(base, None, plan),
            "withheld": lambda: check(base, scored(0.3, 0.05), plan, error, "E1"),
            "copies": lambda: check(heuristic_evaluation, heuristic_evaluation, plan),
            "regenerated": lambda: check(base, scored(0.3, 0.05), plan, (), "E4"),
            "regenerated after": lambda: check(base, scored(0.3, 0.05), plan, (), "E4", 1),
            "no plan": lambda: check(None, None, None, (), "E0"),
        }
        return assemble_evidence(cases[case]())

    made: dict[str, Evidence] = {}

    def remembered(case: str) -> Evidence:
        if case not in made:
            made[case] = make(case)
        return made[case]

    return remembered


@pytest.fixture(scope="session")
def resumed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run that was killed after step 4 and went on from step 2: 12 episodes gave way."""
    top = tmp_path_factory.mktemp("resumed")
    case = read_case(EXAMPLES / "STEPS_RESUMED" / "superseded.toml").case
    return make_case(case, Corpus(top / "sound"), top / "run")


@pytest.fixture(scope="session")
def resumed_evidence(resumed_run: Path) -> Evidence:
    options = PacketOptions(html=False, pdf=False, replay=False, pack=False)
    return build_packet(resumed_run, options=options).evidence


@pytest.fixture(scope="session")
def old_evidence_of(old_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Evidence]:
    """Build the evidence of one of `old_cases.CASES`."""
    made: dict[str, Evidence] = {}

    def make(case: str) -> Evidence:
        if case not in made:
            folder = Path(shutil.copytree(old_run, tmp_path_factory.mktemp("old-case") / "run"))
            OLD_CASES[case](folder)
            options = PacketOptions(html=False, pdf=False, pack=False)
            made[case] = build_packet(folder, options=options).evidence
        return made[case]

    return make


@pytest.fixture(scope="session")
def scored(plan: EvaluationPlan, random_evaluation: Evaluation, rescored: Callable[..., Evaluation]) -> Scored:
    """Make an evaluation whose sampled scores lie about a level, each seed and task a little apart."""

    def make(level: float, *, spread: float = 0.02, turn: int = 5, played: EvaluationPlan | None = None) -> Evaluation:
        scores = {
            (part.name, task, seed): min(1.0, max(0.0, level + spread * ((seed * turn + place) % 7 - 3) / 3))
            for part in plan.parts
            for place, task in enumerate(part.tasks)
            for seed in part.seeds
        }
        evaluation = rescored(random_evaluation, scores)
        return evaluation if played is None else evaluation.model_copy(update={"plan": played})

    return make


@pytest.fixture(scope="session")
def entry(check: Check, scored: Scored) -> Callable[..., Entry]:
    """Enter a run of its own id and adapter into a comparison, with a score after training that is asked for."""

    def make(
        number: int,
        after: Evaluation | float | None,
        *,
        findings: tuple[Finding, ...] = (),
        level: str = "E3",
        name: str | None = None,
        **settings: object,
    ) -> Entry:
        evaluation = scored(after, turn=number + 4) if isinstance(after, float) else after
        alike = ("plan", "policy", "rules_version", "backend_fingerprint", "seed_honoured")
        before = scored(0.2)
        if evaluation is not None:
            # A run of its own accord plays both sides alike.
            before = before.model_copy(update={name: getattr(evaluation, name) for name in alike})
        checked = check(before, evaluation, before.plan, findings, level)
        manifest = checked.run.manifest
        assert manifest is not None
        assert manifest.output_adapter is not None
        own = manifest.model_copy(
            update={
                "run_id": f"run-{number:012x}",
                "run_name": name or f"run-{number}",
                "output_adapter": manifest.output_adapter.model_copy(update={"sha256": f"{number:064x}"}),
                "configuration": manifest.configuration.model_copy(update=settings),
            }
        )
        run = dataclasses.replace(checked.run, manifest=own)
        return Entry(Path(f"run-{number}"), checked._replace(run=run, root_sha256=f"{number:064x}"), None)

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file; it does not outlive them, for its event loop would be in others' way."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def sound_address(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run without a fault."""
    run = Path(shutil.copytree(built_run, tmp_path_factory.mktemp("sound") / "run"))
    return page_address(run, replay=False)


@pytest.fixture(scope="session")
def hostile_address(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run that tries to break out of it."""
    run = hostile_run(built_run, tmp_path_factory.mktemp("hostile") / "run")
    return page_address(run, title=HOSTILE[:200])


@pytest.fixture(scope="session")
def hostile_old_address(old_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run in the public script's layout that tries to break out of it."""
    return page_address(hostile_old_run(old_run, tmp_path_factory.mktemp("hostile-old") / "run"))


@pytest.fixture(scope="session")
def enclosures(evidence_of: Callable[[str], Evidence]) -> tuple[Enclosure, ...]:
    """What travels inside `whole_paper`."""
    own = file_bytes(evidence_of("improved"))
    return Enclosure("evidence.json", "Every number", own), Enclosure("empty.json", "Nothing", b"")


@pytest.fixture(scope="session")
def whole_paper(
    evidence_of: Callable[[str], Evidence],
    enclosures: tuple[Enclosure, ...],
    press: Press,
    tmp_path_factory: pytest.TempPathFactory,
) -> bytes:
    """The paper of an improved run with all of its chapters."""
    evidence = evidence_of("improved")

    def make() -> bytes:
        with press.in_use():
            return render_paper(evidence, draw_once(evidence), enclosures, created="2026-01-02T03:04:05Z")

    return once_for_all(tmp_path_factory, "whole-paper.pdf", make)


@pytest.fixture(scope="session")
def press() -> Iterator[Press]:
    """Prints faster than a process for each paper, for tests that look at the paper alone."""
    made = Press()
    yield made
    made.close()


@pytest.fixture
def press_in_use(press: Press) -> Iterator[None]:
    with press.in_use():
        yield
