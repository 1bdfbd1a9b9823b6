"""The errors that a user meets, each in three lines: what, where, how to mend.

An error of ours is always a [`MolForgeError`][molforge_env.errors.MolForgeError]; a command line prints its
text and leaves with its exit code. A model's bad action is never an error: it is an event of the episode.
"""

from __future__ import annotations

import errno

EXIT_SOUND = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3

OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors by which a disk, a quota or a limit on files says that no more can be written."""


class MolForgeError(Exception):
    """What happened, where, and how to mend it.

    Args:
        what: One sentence that names the offending value.
        where: File and line, configuration key, or scenario, episode and turn.
        mend: One instruction, with the command where there is one.
    """

    exit_code = EXIT_USAGE

    def __init__(self, what: str, *, where: str, mend: str) -> None:
        """Keep the three lines and join them as the message."""
        self.what = what
        self.where = where
        self.mend = mend
        super().__init__(f"{what}\n  where: {where}\n  mend:  {mend}")


class UsageError(MolForgeError):
    """A call or a setting that cannot be carried out."""


class UnreadableError(MolForgeError):
    """Evidence that cannot be read at all."""

    exit_code = EXIT_UNREADABLE


class MissingDependencyError(MolForgeError):
    """A package or system library that the command needs is absent."""


class UnknownScenarioError(UsageError):
    """A scenario or suite name that the rules do not know."""


class ToolArgumentError(MolForgeError):
    """Tool arguments outside the tool's schema; the environment has not moved."""


class EpisodeOverError(MolForgeError):
    """A step after the end of an episode; nothing has changed."""
