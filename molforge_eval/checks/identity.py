"""Whether every artifact belongs to this run (rule R7): run id, plan, rules and laboratory agree."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from molforge_eval import layout
from molforge_eval.canonical import digest
from molforge_eval.catalogue import finding, seen, short
from molforge_eval.findings import Finding
from molforge_eval.records import RunManifest
from molforge_eval.run_directory import RunDirectory


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare what the artifacts of a run say about the run."""
    yield from _check_run_ids(run)
    yield from _check_plan(run)
    yield from _check_laboratory(run)


def _check_run_ids(run: RunDirectory) -> Iterator[Finding]:
    records = {
        layout.MANIFEST: run.manifest,
        layout.PLAN: run.plan,
        layout.BEFORE: run.before,
        layout.AFTER: run.after,
        layout.SUMMARY: run.summary,
        layout.CHECKSUMS: run.checksums,
        layout.PLOT_DATA: run.plot_table,
    }
    claims = {path: record.run_id for path, record in records.items() if record is not None}
    expected = next((run_id for run_id in claims.values() if run_id is not None), None)
    for path, run_id in claims.items():
        if run_id != expected:
            what = f"run id {seen(run_id)}, the run is {expected}"
            yield finding("RUN_ID_DIFFERS", what, file=path, pointer="/run_id")
    for path, table in ((layout.ROLLOUTS, run.every_rollout), (layout.TRAINER_LOG, run.every_trainer_row)):
        expected = expected or (table["run_id"][0] if len(table) else None)
        if expected is None:
            continue
        foreign = table.filter(pl.col("run_id") != expected).group_by("run_id").agg(pl.col("line").min(), pl.len())
        for run_id, line, count in foreign.sort("line").iter_rows():
            what = f"run id {seen(run_id)} on {count} lines, the run is {expected}"
            yield finding("RUN_ID_DIFFERS", what, file=path, line=line, pointer="/run_id")


def _check_plan(run: RunDirectory) -> Iterator[Finding]:
    planned = None if run.plan is None else digest(run.plan)
    if run.manifest is not None and planned is not None and run.manifest.plan_sha256 != planned:
        what = (
            f"the plan has digest {short(planned)}, the manifest took {short(run.manifest.plan_sha256)} before step 0"
        )
        yield finding("PLAN_DIFFERS", what, file=layout.PLAN)
    for path, evaluation in run.evaluations():
        own = digest(evaluation.plan)
        if evaluation.plan_sha256 != own:
            what = f"plan_sha256 is {short(evaluation.plan_sha256)}, the plan inside has digest {short(own)}"
            yield finding("PLAN_DIFFERS", what, file=path, pointer="/plan_sha256")
        elif planned is not None and own != planned:
            what = f"the evaluation played plan {short(own)}, the run's plan is {short(planned)}"
            yield finding("PLAN_DIFFERS", what, file=path, pointer="/plan")


def _check_laboratory(run: RunDirectory) -> Iterator[Finding]:
    if run.manifest is None:
        return
    backend = run.manifest.backend.rules_version
    if backend != run.manifest.rules_version:
        what = f"rules {seen(backend)} of the backend, the run has {seen(run.manifest.rules_version)}"
        yield finding("RULES_DIFFER", what, file=layout.MANIFEST, pointer="/backend/rules_version")
    yield from _check_versions(run.manifest)
    for path, evaluation in run.evaluations():
        if evaluation.rules_version != run.manifest.rules_version:
            what = f"rules {seen(evaluation.rules_version)}, the run has {seen(run.manifest.rules_version)}"
            yield finding("RULES_DIFFER", what, file=path, pointer="/rules_version")
        if evaluation.backend_fingerprint != run.manifest.backend.property_table_sha256:
            what = "the chemistry backend of the evaluation is not that of the run"
            yield finding("BACKEND_DIFFERS", what, file=path, pointer="/backend_fingerprint")


def _check_versions(manifest: RunManifest) -> Iterator[Finding]:
    """A manifest states some versions twice."""
    pairs = (
        ("molforge-evidence", manifest.product_version, "product_version"),
        ("python", manifest.backend.python_version, "backend/python_version"),
        ("rdkit", manifest.backend.rdkit_version, "backend/rdkit_version"),
    )
    for name, stated, key in pairs:
        package = manifest.packages.get(name)
        if package is not None and _spelled_alike(package) != _spelled_alike(stated):
            what = f"package {name} has version {seen(package)}, {key} is {seen(stated)}"
            yield finding("VERSIONS_DIFFER", what, file=layout.MANIFEST, pointer=f"/packages/{name}")


def _spelled_alike(version: str) -> str:
    # RDKit calls itself 2026.09.1, its package is 2026.9.1.
    return ".".join(part.lstrip("0") or "0" for part in version.split("."))
