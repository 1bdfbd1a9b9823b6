"""Sealing: hashes, counts and chains of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence_builder import Clock, read_json, read_lines, train_episode

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.canonical import chain_of, chain_start, sha256_hex
from molforge_eval.records import Checksums
from molforge_eval.run_files import list_run
from molforge_eval.sealing import RolloutChains, checksum_of, end_of_log, root_of, seal_run, write_whole


def test_the_seal_names_every_record_and_no_packet_file(run_copy: Path) -> None:
    for path in layout.PACKET_FILES:
        (run_copy / path).write_bytes(b"packet")
    checksums = seal_run(run_copy)
    paths = [entry.path for entry in checksums.files]

    assert paths == sorted(path for path in list_run(run_copy).sizes if layout.is_record(path))
    assert not set(paths) & {*layout.PACKET_FILES, layout.CHECKSUMS}
    assert checksums == Checksums.model_validate(read_json(run_copy, layout.CHECKSUMS))


def test_a_packet_beside_the_records_does_not_move_the_root(run_copy: Path) -> None:
    before = seal_run(run_copy).root_sha256
    (run_copy / layout.PACKET_HTML).write_bytes(b"packet")

    assert seal_run(run_copy).root_sha256 == before


def test_the_root_moves_with_every_byte_and_name_of_a_record(run_copy: Path) -> None:
    roots = {seal_run(run_copy).root_sha256}
    (run_copy / layout.SUMMARY).write_bytes((run_copy / layout.SUMMARY).read_bytes() + b" ")
    roots.add(seal_run(run_copy).root_sha256)
    (run_copy / "plots/loss_curve.png").rename(run_copy / "plots/other.png")
    roots.add(seal_run(run_copy).root_sha256)

    assert len(roots) == 3


def test_a_logs_end_is_its_last_lines_chain_or_the_digest_of_its_last_line(run_copy: Path) -> None:
    checksums = seal_run(run_copy)
    rollouts, trainer = checksums.logs
    last_row = (run_copy / layout.TRAINER_LOG).read_bytes().splitlines()[-1]

    assert (rollouts.lines, rollouts.chain, rollouts.episodes) == (
        len(read_lines(run_copy)),
        read_lines(run_copy)[-1]["chain"],
        24,
    )
    assert (trainer.lines, trainer.chain, trainer.episodes) == (5, sha256_hex(last_row), None)


def test_blank_lines_do_not_count_and_a_log_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / layout.TRAINER_LOG).write_bytes(b'\n{"a":1}\n\n{"a":2}\n\n')
    (tmp_path / layout.ROLLOUTS).write_bytes(b"")
    files = list_run(tmp_path)

    assert end_of_log(files, layout.TRAINER_LOG) == (2, sha256_hex(b'{"a":2}'))
    assert end_of_log(files, layout.ROLLOUTS) == (0, None)


def test_lines_of_interleaved_episodes_are_chained_each_to_its_own() -> None:
    first, second = (train_episode(0, 0, generation, Clock()) for generation in (0, 1))
    together, apart = RolloutChains(), (RolloutChains(), RolloutChains())
    pairs = list(zip(first, second, strict=False))
    mixed = [together.seal(line) for pair in pairs for line in pair]
    alone = [chains.seal(line) for pair in pairs for chains, line in zip(apart, pair, strict=True)]

    assert mixed == alone
    start = chain_start(first[0].run_id, first[0].episode_id)
    assert mixed[0].chain == chain_of(start, first[0].model_dump(mode="json"))


def test_a_run_without_a_manifest_cannot_be_sealed(run_copy: Path) -> None:
    (run_copy / layout.MANIFEST).unlink()

    with pytest.raises(UnreadableError):
        seal_run(run_copy)


def test_writing_replaces_a_link_and_leaves_what_it_led_to(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"keep")
    (tmp_path / "inside").symlink_to(tmp_path / "outside")
    write_whole(tmp_path / "inside", b"new")

    assert (tmp_path / "outside").read_bytes() == b"keep"
    assert (tmp_path / "inside").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "outside"]


def test_the_root_of_a_list_depends_on_its_order(run_copy: Path) -> None:
    files = seal_run(run_copy).files

    assert root_of(files) != root_of(files[::-1])


def test_a_file_is_hashed_once_for_all_who_ask(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"first")
    files = list_run(tmp_path)
    asked = checksum_of(files, "log")
    (tmp_path / "log").write_bytes(b"other")

    assert asked.sha256 == sha256_hex(b"first")
    assert checksum_of(files, "log") == asked
    assert checksum_of(list_run(tmp_path), "log").sha256 == sha256_hex(b"other")
