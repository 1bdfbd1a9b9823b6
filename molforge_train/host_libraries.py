"""The host's libraries: whether they can be imported, whether they were tested, and how they are kept quiet.

TRL imports a module when a name of it is first asked for, and some of its modules want packages that it does not
install. What is missing is said at the start of a run in three lines, not by a traceback in the middle of it.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import logging
import re
import sys
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files

from molforge_env.errors import MissingDependencyError
from molforge_eval.records.manifest import Configuration
from molforge_train.preflight import check_packages
from molforge_train.progress import warn

_NEEDED = {
    "datasets": ("Dataset",),
    "peft": ("LoraConfig", "PeftModel"),
    "transformers": ("AutoModelForCausalLM", "TrainerCallback"),
    "trl": ("GRPOConfig", "GRPOTrainer"),
}
"""What a run takes from each."""
FINETUNING = {
    "datasets": ("Dataset",),
    "peft": ("LoraConfig",),
    "transformers": ("AutoModelForCausalLM", "PrinterCallback"),
    "trl": ("SFTConfig", "SFTTrainer"),
}
"""What fine-tuning takes from each."""
_PACKAGES = {"yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn", "cv2": "opencv-python", "git": "gitpython"}
"""Packages whose name is not that of their module."""
_MODULE = re.compile(r"No module named '([\w.]+)'")
_SHOWN = 200


def check_libraries(needed: Mapping[str, tuple[str, ...]] = _NEEDED, engine: Configuration | None = None) -> None:
    """Refuse libraries that are absent or broken, warn of those that were not tested, and quieten the rest.

    Args:
        needed: Names that are asked of each.
        engine: Says whether Unsloth is used, which has to be imported before those that it changes.

    Raises:
        MissingDependencyError: One is absent or cannot be imported.
    """
    check_packages()
    if engine is not None and engine.use_unsloth:
        import_host({"unsloth": ("FastLanguageModel",)})
    import_host(needed)
    for sentence in untested_versions():
        warn(sentence)
    quieten_libraries()


def import_host(needed: Mapping[str, tuple[str, ...]] = _NEEDED) -> None:
    """Import what a run needs of its libraries.

    Args:
        needed: Names that are asked of each.

    Raises:
        MissingDependencyError: One cannot be imported; the package that is missing is named with the mend.
    """
    with _kept_for_good(needed):
        for library, names in needed.items():
            try:
                module = importlib.import_module(library)
                for name in names:
                    getattr(module, name)
            # A library that is imported runs code of its own, which may fail in any way.
            except Exception as error:
                raise _trap_of(library, error) from error


@contextmanager
def _kept_for_good(libraries: Iterable[str]) -> Iterator[None]:
    """Keep the collector away from what is imported: half a million objects, none of which is ever garbage.

    Where one of the libraries is in use already, the program is not ours alone, and its objects may become garbage.
    """
    if not gc.isenabled() or any(library in sys.modules for library in libraries):
        yield
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def _trap_of(library: str, error: BaseException) -> MissingDependencyError:
    missing = _missing_module(error)
    if missing is None:
        why = " ".join(str(error).split())[:_SHOWN] or type(error).__name__
        return MissingDependencyError(
            f"{library} cannot be imported: {why}",
            where=f"python package {library}",
            mend='Install the tested versions, in a clone: pip install -c constraints.txt ".[train]"',
        )
    return MissingDependencyError(
        f"{library} wants the module {missing}, which this environment has not",
        where=f"python package {library}",
        mend=f"Install it: pip install {_PACKAGES.get(missing, missing)}",
    )


def _missing_module(error: BaseException | None) -> str | None:
    """Name the top module that is absent, however deep in the causes of an error that stands."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            return error.name.partition(".")[0]
        # Lazy imports of the host tell the cause in words only.
        told = _MODULE.search(str(error))
        if told is not None:
            return told[1].partition(".")[0]
        error = error.__cause__ or error.__context__
    return None


def untested_versions(installed: Mapping[str, str] | None = None) -> Iterator[str]:
    """Say of each library outside its tested release series which one was tested.

    Args:
        installed: Version of each library; those of this environment when absent.
    """
    tested = tomllib.loads(files("molforge_train").joinpath("tested_versions.toml").read_text("utf-8"))
    for name, series in tested.items():
        version = importlib.metadata.version(name) if installed is None else installed[name]
        if version.split(".")[:2] != series.split("."):
            yield f"{name} {version} was not tested with this version; {series} was (constraints.txt)"


def quieten_libraries() -> None:
    """Switch off the bars and notes of the host libraries, and their reports to their makers."""
    # Their bars and notes would stand between the command's own lines.
    import datasets
    import huggingface_hub.constants
    import transformers

    # TRL would tell the hub what kind of model is trained on what device: a run talks to nobody unasked.
    huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
    # A hub that cannot be reached is told once, in three lines, not at every try.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    warnings.filterwarnings("ignore", message=".*environment_factory.*", category=UserWarning)
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    # The base model is named as it is found from anywhere, which peft takes for a path of this folder.
    warnings.filterwarnings("ignore", message="Could not find a config file", category=UserWarning)
