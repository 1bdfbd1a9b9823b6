"""The one base model: frozen, closed, finite.

Everything that crosses a boundary (an action, a record, a manifest) is built on it, so an unknown key, a NaN or a
later assignment is refused where it enters.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A record that cannot change after it has been checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
