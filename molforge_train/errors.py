"""How a training run can end before its last step."""

from __future__ import annotations

from molforge_env.command_line import EXIT_INTERRUPTED
from molforge_env.errors import MolForgeError


class RunInterruptedError(MolForgeError):
    """A signal, or a disk without room, ended the run before its last step."""

    exit_code = EXIT_INTERRUPTED


class RunFailedError(MolForgeError):
    """Training broke off; what was recorded until then is sealed."""
