from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from molforge_env.errors import MolForgeError, UnreadableError, UsageError
from molforge_eval.model_loading import find_held, is_out_of_memory, load_model
from molforge_eval.policies import Loading, PolicySpec
from molforge_eval.weights import ADAPTER_CONFIG, ADAPTER_WEIGHTS, base_model_digest, read_adapter

ROOT = Path(__file__).resolve().parents[3]
TINY = ROOT / "molforge_train" / "models" / "tiny"
BASE, ADAPTER = str(TINY / "base"), str(TINY / "sft_adapter")


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ADAPTER, tmp_path / "adapter"))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BASE, tmp_path / "base"))


def _rewrite(adapter: Path, change: Any) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(adapter / ADAPTER_WEIGHTS)
    save_file(change(tensors), adapter / ADAPTER_WEIGHTS)


def _refusal(spec: PolicySpec) -> MolForgeError:
    with pytest.raises(MolForgeError) as refusal:
        load_model(spec, Loading())
    assert len(str(refusal.value).splitlines()) == 3
    return refusal.value


def test_a_small_model_on_a_processor_is_loaded_in_double_precision() -> None:
    loaded = load_model(PolicySpec("hf", BASE, None), Loading(device="cpu"))

    assert loaded.dtype == "float64"
    assert not loaded.model.training
    assert loaded.base_sha256 == base_model_digest(Path(BASE))
    assert loaded.adapter_sha256 is None


def test_another_precision_is_what_was_asked_for() -> None:
    assert load_model(PolicySpec("hf", BASE, None), Loading(dtype="float32")).dtype == "float32"


def test_a_merged_adapter_gives_the_logits_of_the_adapter_beside_its_base() -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    merged = load_model(PolicySpec("hf", BASE, ADAPTER), Loading(device="cpu"))
    beside = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(BASE), ADAPTER).double().eval()
    bare = load_model(PolicySpec("hf", BASE, None), Loading(device="cpu"))
    ids = torch.arange(5, 60)[None]
    with torch.inference_mode():
        wanted = beside(input_ids=ids).logits
        assert torch.allclose(merged.model(input_ids=ids).logits, wanted, atol=1e-5)
        assert not torch.allclose(bare.model(input_ids=ids).logits, wanted, atol=1e-2)
    assert merged.adapter_sha256 == read_adapter(Path(ADAPTER)).sha256


def test_a_path_that_begins_with_the_package_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load_model(PolicySpec("hf", "molforge_train/models/tiny/base", None), Loading())

    assert loaded.base_sha256 == base_model_digest(Path(BASE))


def test_an_adapter_of_other_keys_is_refused_with_the_first_key_and_the_count(adapter: Path) -> None:
    _rewrite(
        adapter, lambda tensors: {key.replace(".layers.0.", ".layers.7."): value for key, value in tensors.items()}
    )
    error = _refusal(PolicySpec("hf", BASE, str(adapter)))

    assert isinstance(error, UsageError)
    assert ".layers.0." in error.what
    assert "is missing from the adapter; 28 of 42 keys do not match" in error.what


def test_an_adapter_with_a_key_too_many_is_refused(adapter: Path) -> None:
    def more(tensors: dict[str, Any]) -> dict[str, Any]:
        return {"a.first.key": next(iter(tensors.values())), **tensors}

    _rewrite(adapter, more)

    assert "a.first.key is no key of the model; 1 of 29 keys" in _refusal(PolicySpec("hf", BASE, str(adapter))).what


def test_an_adapter_of_other_shapes_is_refused_with_both_shapes(adapter: Path) -> None:
    config = json.loads((adapter / ADAPTER_CONFIG).read_text())
    (adapter / ADAPTER_CONFIG).write_text(json.dumps(config | {"r": 4}))

    assert "the model wants" in _refusal(PolicySpec("hf", BASE, str(adapter))).what


@pytest.mark.parametrize("change", [{"target_modules": ["no_such_layer"]}, {"peft_type": "NO_SUCH_TYPE"}])
def test_an_adapter_whose_configuration_does_not_fit_is_refused(adapter: Path, change: dict[str, Any]) -> None:
    config = json.loads((adapter / ADAPTER_CONFIG).read_text())
    (adapter / ADAPTER_CONFIG).write_text(json.dumps(config | change))

    assert "does not fit" in _refusal(PolicySpec("hf", BASE, str(adapter))).what


@pytest.mark.parametrize("name", ["./nowhere", "molforge_train/models/large", "a/b/c", "~/nowhere"])
def test_a_model_that_is_nowhere_names_where_it_was_looked_for(name: str) -> None:
    error = _refusal(PolicySpec("hf", name, None))

    assert error.what == f"there is no model at {name}"
    assert "looked for the folder" in error.where


def test_an_absent_adapter_names_where_it_was_looked_for() -> None:
    error = _refusal(PolicySpec("hf", BASE, "./nowhere"))

    assert error.what == "there is no adapter at ./nowhere"


def test_a_hub_name_that_cannot_be_fetched_says_so() -> None:
    error = _refusal(PolicySpec("hf", "molforge-test/there-is-no-such-model", None))

    assert error.what.startswith("there is no model molforge-test/there-is-no-such-model")
    assert "on the hub" in error.where


def test_a_model_without_some_of_its_weights_is_unreadable(base: Path) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(base / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    error = _refusal(PolicySpec("hf", str(base), None))

    assert isinstance(error, UnreadableError)
    assert "lacks model.norm.weight; 1 weights are missing" in error.what


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_model_with_a_damaged_file_is_unreadable(base: Path, name: str) -> None:
    (base / name).write_text("{")

    assert "cannot be loaded" in _refusal(PolicySpec("hf", str(base), None)).what


def test_running_out_of_memory_is_told_from_other_faults() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"))
    assert is_out_of_memory(RuntimeError("std::bad_alloc"))
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
    assert not is_out_of_memory(RuntimeError("size mismatch"))


def test_a_model_of_the_hub_is_held_when_its_weights_are_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert find_held("someone/tiny") is None

    revision = "0123456789abcdef0123456789abcdef01234567"
    model = tmp_path / "models--someone--tiny"
    snapshot = model / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(revision)
    shutil.copy(TINY / "base" / "config.json", snapshot)
    assert find_held("someone/tiny") is None

    shutil.copy(TINY / "base" / "model.safetensors", snapshot)
    assert find_held("someone/tiny") == snapshot
    assert find_held(str(TINY / "base")) == TINY / "base"
    assert base_model_digest(snapshot) == base_model_digest(TINY / "base")
