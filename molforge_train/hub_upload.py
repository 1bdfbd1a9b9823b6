"""A sealed run on a hub: the run directory under its name, its archive beside it, the card as the repository's page.

All of it is one commit, so that a repository holds a run whole or not at all; what was sent before a connection broke
is not sent again. The repository is made private, and the token is the one that the hub's own library finds.
"""

from __future__ import annotations

import time
from pathlib import Path

from molforge_eval import layout
from molforge_eval.run_files import list_run
from molforge_train.drive_copy import DeliveryError, as_word
from molforge_train.provenance import scrubbed

_WAITS = (1.0, 4.0)
"""Seconds before a second and a third try; the library's own come on top."""
_REFUSED = (400, 401, 402, 403, 404, 409, 413, 422)
"""Answers of a server that another try does not change."""
_NO_ACCESS = (401, 403, 404)
_LOGIN = "Give a token that may write there (HF_TOKEN, or `hf auth login`)"
_LONGEST_REASON = 300


def upload_run(folder: Path, archive: Path, repository: str) -> str:
    """Commit a sealed run and its archive to a repository of the hub, which is made private where there is none.

    Args:
        folder: The run directory.
        archive: Its archive.
        repository: `owner/name`.

    Returns:
        Address of the commit; of the last one when nothing has changed since.

    Raises:
        DeliveryError: There is no token, no connection or no right to write; the repository is as it was.
    """
    from huggingface_hub import get_token

    if get_token() is None:
        raise _failed(folder, repository, "there is no token for the hub", _LOGIN)
    waits = list(_WAITS)
    while True:
        try:
            return _commit(folder, archive, repository)
        except Exception as error:
            # The border to the hub: errors of its library, of the network and of the uploader have no common root.
            status = getattr(getattr(error, "response", None), "status_code", None)
            if not waits or status in _REFUSED or _is_final(error):
                advice = _LOGIN if status in _NO_ACCESS else "Connect the machine"
                raise _failed(folder, repository, str(error) or type(error).__name__, advice) from error
        time.sleep(waits.pop(0))


def _commit(folder: Path, archive: Path, repository: str) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi()
    api.create_repo(repository, private=True, exist_ok=True)
    message = f"Add the run {folder.name}"
    sources = _sources(folder, archive)
    standing = [file.rfilename for file in api.model_info(repository).siblings or ()]
    # What an older state of the run, or another run of the name, has left there would be taken for a part of this one.
    stale = [path for path in standing if path.startswith(f"{folder.name}/") and path not in sources]
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(CommitOperationAdd(path_in_repo=path, path_or_fileobj=source) for path, source in sources.items()),
        *(CommitOperationDelete(path_in_repo=path) for path in stale),
    ]
    return str(api.create_commit(repository, operations, commit_message=message).commit_url)


def _sources(folder: Path, archive: Path) -> dict[str, str]:
    files = list_run(folder)
    # The listing holds plain files only: a link is no part of a run.
    sources = {f"{folder.name}/{path}": str(folder / path) for path in files.sizes if layout.is_packed(path)}
    sources[archive.name] = str(archive)
    if layout.ADAPTER_CARD in files:
        sources["README.md"] = str(folder / layout.ADAPTER_CARD)
    return sources


def _is_final(error: Exception) -> bool:
    from huggingface_hub.errors import OfflineModeIsEnabled

    return isinstance(error, ValueError | OfflineModeIsEnabled)


def _failed(folder: Path, repository: str, reason: str, advice: str) -> DeliveryError:
    words = scrubbed(" ".join(reason.split()))
    words = words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}…"
    return DeliveryError(
        f"the run is whole in {scrubbed(str(folder))}, and its upload failed: {words}",
        where=f"hf_output_repo (HF_OUTPUT_REPO) {repository}",
        mend=f"{advice}, then upload it again: molforge-train deliver {as_word(folder)} --hf {repository}",
    )
