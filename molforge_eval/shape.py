"""Whether a value fits the schema of its artifact (rule R3).

A compiled validator answers yes or no; only a value that it refuses is explained, by the reference implementation. The
two are held to the same verdict by a test. Messages name the key and the value, never the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, NoReturn

import jsonschema
import jsonschema_rs
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry
from referencing.exceptions import NoSuchResource

from molforge_eval import schema_files
from molforge_eval.catalogue import seen
from molforge_eval.strict_json import pointer_of

MOST_MISFITS = 50
"""Misfits of one value that are named."""


class Misfit(NamedTuple):
    """One reason why a value does not fit."""

    pointer: str
    what: str


class Shape:
    """The schema of one artifact, ready for checking."""

    def __init__(self, name: str) -> None:
        """Compile the schema; no reference leaves it."""
        schema = schema_files.load(name)
        self._compiled = jsonschema_rs.Draft202012Validator(
            dict(schema), validate_formats=True, retriever=_refuse_address
        )
        self._reference: Any = _ReferenceValidator(
            schema, registry=_CLOSED_REGISTRY, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )

    def fits(self, value: Any) -> bool:
        """Tell whether a value fits; numbers in it must be finite."""
        return self._compiled.is_valid(value)

    def reference_fits(self, value: Any) -> bool:
        """Tell the same by the reference implementation."""
        return bool(self._reference.is_valid(value))

    def explain(self, value: Any) -> Iterator[Misfit]:
        """Name what does not fit, the first fifty."""
        named: set[Misfit] = set()
        for error in self._reference.iter_errors(value):
            for misfit in _misfits(error):
                if misfit not in named:
                    named.add(misfit)
                    yield misfit
                if len(named) == MOST_MISFITS:
                    return


@cache
def shape_of(name: str) -> Shape:
    """Return the shape of an artifact by its schema's name."""
    return Shape(name)


def _refuse_address(address: str) -> NoReturn:
    raise NoSuchResource(address)


def _match_whole(_: Any, pattern: str, value: Any, __: Mapping[str, Any]) -> Iterator[ValidationError]:
    # Python's `$` also matches before a last newline; the dialect's does not.
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_CLOSED_REGISTRY: Registry[Any] = Registry().with_resources([])
_ReferenceValidator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # its stubs have no types here
    jsonschema.Draft202012Validator, {"pattern": _match_whole}
)


def _misfits(error: Any) -> Iterator[Misfit]:
    if error.validator == "anyOf" and error.context:
        meant = _meant_branch(error)
        if meant:
            for inner in meant:
                yield from _misfits(inner)
            return
        nearest = best_match(iter(error.context))
        if nearest is not None and nearest.absolute_path != error.absolute_path:
            yield from _misfits(nearest)
            return
    pointer = pointer_of(error.absolute_path)
    if error.validator == "required":
        yield from (
            Misfit(pointer, f"key {seen(key)} is missing") for key in error.validator_value if key not in error.instance
        )
    elif error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema.get("properties", {})
        yield from (Misfit(pointer, f"key {seen(key)} is not known here") for key in error.instance if key not in known)
    else:
        yield Misfit(pointer, f"value {seen(error.instance)} {_demand(error)}")


def _meant_branch(error: Any) -> list[Any]:
    """Find the one branch of a union that has the type of the value, by what does not fit in it; none if not one."""
    branches: dict[int, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    typed = [
        own
        for own in branches.values()
        if not any(item.validator in _WHOLE and item.absolute_path == error.absolute_path for item in own)
    ]
    return typed[0] if len(typed) == 1 else []


_WHOLE = ("type", "const", "enum")
"""What says of a value as a whole that it is of another kind."""
_DEMANDS: Mapping[str, str] = {
    "type": "is no {}",
    "const": "is not {}",
    "enum": "is none of {}",
    "anyOf": "is none of {}",
    "format": "is no {}",
    "pattern": "has another form than {}",
    "minimum": "is under the least allowed, {}",
    "exclusiveMinimum": "is not over {}",
    "minLength": "is shorter than {}",
    "minItems": "has fewer items than {}",
    "maximum": "is over the most allowed, {}",
    "exclusiveMaximum": "is not under {}",
    "maxLength": "is longer than {}",
    "maxItems": "has more items than {}",
}


def _demand(error: Any) -> str:
    wanted = error.validator_value
    words = _DEMANDS.get(error.validator)
    if words is None:
        return f"does not satisfy {error.validator}"
    if error.validator == "anyOf":
        return words.format(", ".join(_branches(wanted)))
    if error.validator == "enum":
        return words.format(", ".join(seen(item) for item in wanted))
    return words.format(wanted if isinstance(wanted, str) and error.validator != "const" else seen(wanted))


def _branches(branches: Any) -> Iterator[str]:
    for branch in branches:
        yield str(branch.get("type") or branch.get("$ref", "").rsplit("/", 1)[-1] or "another form")
