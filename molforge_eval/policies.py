"""Who can be evaluated: a reference policy by name, or a model with or without an adapter."""

from __future__ import annotations

import importlib.util
from typing import Literal, NamedTuple

from molforge_env.errors import MissingDependencyError, UsageError
from molforge_env.policies import POLICIES, find_policy
from molforge_eval.played import Player
from molforge_eval.scripted_player import ScriptedPlayer

MODEL_PACKAGES = ("torch", "transformers", "peft", "trl")
SPELLING = "hf:MODEL, hf:MODEL+ADAPTER or scripted:NAME"
DTypeName = Literal["auto", "float64", "float32", "bfloat16", "float16"]


class PolicySpec(NamedTuple):
    """A policy as it was asked for."""

    kind: Literal["hf", "scripted"]
    name: str
    """Name of the reference policy, or the base model: a folder or a hub name."""
    adapter: str | None
    """Folder or hub name of the adapter."""

    def text(self) -> str:
        """Spell it as on the command line."""
        return f"{self.kind}:{self.name}" + (f"+{self.adapter}" if self.adapter else "")


class Loading(NamedTuple):
    """How a model is loaded and run."""

    dtype: DTypeName = "auto"
    """`auto`: double precision for a small model on a processor, where it costs little and batching cannot show;
    else what the model was saved in."""
    device: str = "auto"
    batch_size: int = 64
    """Episodes that take their turns together."""
    merged: bool = True
    """Put the adapter's weights into the model's; otherwise it stays beside them."""


def parse_policy(text: str, *, adapter: str | None = None) -> PolicySpec:
    """Read a policy as it stands on the command line.

    Args:
        text: `hf:MODEL`, `hf:MODEL+ADAPTER` or `scripted:NAME`.
        adapter: An adapter that was given apart.

    Raises:
        UsageError: The text is none of these, or an adapter is given twice or to a scripted policy.

    >>> parse_policy("hf:models/base+runs/a/adapters")
    PolicySpec(kind='hf', name='models/base', adapter='runs/a/adapters')
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("hf", "scripted") or not rest:
        raise UsageError(f"policy {text!r} is not known", where="policy", mend=f"Write {SPELLING}.")
    if kind == "scripted":
        if adapter is not None:
            raise UsageError(
                f"the scripted policy {rest!r} has no adapter",
                where="adapter",
                mend="Leave the adapter out, or evaluate a model with hf:MODEL.",
            )
        find_policy(rest)
        return PolicySpec("scripted", rest, None)
    name, plus, own = rest.partition("+")
    if not name or (plus and not own):
        raise UsageError(f"policy {text!r} lacks a name", where="policy", mend=f"Write {SPELLING}.")
    if own and adapter is not None:
        raise UsageError(f"two adapters were given, {own!r} and {adapter!r}", where="adapter", mend="Give one of them.")
    return PolicySpec("hf", name, own or adapter)


def open_policy(spec: PolicySpec, loading: Loading | None = None) -> Player:
    """Get a policy ready to play.

    Args:
        spec: From [`parse_policy`][molforge_eval.policies.parse_policy].
        loading: How a model is loaded; means nothing to a scripted policy.

    Raises:
        UsageError: A model or adapter is absent, or the two do not fit each other.
        UnreadableError: A weight file is damaged, or a pointer in place of the weights.
        MissingDependencyError: A model is asked for, and the packages that run one are not installed.
    """
    if spec.kind == "scripted":
        return ScriptedPlayer(spec.name)
    require_model_packages(f"policy {spec.text()}")
    from molforge_eval.model_policy import open_model

    return open_model(spec, Loading() if loading is None else loading)


def require_model_packages(where: str) -> None:
    """Look for the packages that run a model, without importing them.

    Args:
        where: What asks for a model.

    Raises:
        MissingDependencyError: One of them is absent.
    """
    missing = [name for name in MODEL_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"playing a model needs {', '.join(missing)}, which this environment has not",
            where=where,
            mend='Install them, in a clone: pip install -c constraints.txt ".[train]"',
        )


def scripted_names() -> tuple[str, ...]:
    """List the reference policies."""
    return tuple(POLICIES)
