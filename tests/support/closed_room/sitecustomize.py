"""Start-up of an interpreter that may not leave its room: no network, no program, no pickle, no file written outside.

Python imports this by itself where its folder is on the path, in child processes too. What is refused raises and is
written down in the file that `CLOSED_ROOM_REPORT` names; `CLOSED_ROOM_WRITABLE` and `CLOSED_ROOM_RUN` are folders.
"""

from __future__ import annotations

import os
import sys

_REPORT = os.environ["CLOSED_ROOM_REPORT"]
_WRITABLE = tuple(os.environ["CLOSED_ROOM_WRITABLE"].split(os.pathsep))
_RUN = os.environ["CLOSED_ROOM_RUN"]
_CHILDREN = ("molforge_eval.pdf_reader", "molforge_eval.report.paper_press")
_SEARCH = ("ldconfig", "gcc", "cc", "ld", "objdump")
"""What Python's own search for a system library starts, for the one that prints paper."""
_NETWORK = (2, 10)
"""The address families of IPv4 and IPv6."""
_VOID = "/dev/null"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_REFUSED = ("pickle.find_class", "os.exec", "os.system", "os.posix_spawn", "os.startfile", "ftplib.connect",
            "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.connect", "socket.bind",
            "socket.sendto", "urllib.Request", "smtplib.connect", "webbrowser.open", "marshal.load")  # fmt: skip
_CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.chown",
            "os.truncate", "shutil.rmtree", "shutil.move")  # fmt: skip
_is_busy = False


def _is_writable(path: object) -> bool:
    if isinstance(path, int):
        return True
    real = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]  # the event's own argument
    return real == _VOID or any(real == folder or real.startswith(folder + os.sep) for folder in _WRITABLE)


def _is_in_run(path: object) -> bool:
    return isinstance(path, str) and not path.startswith("<") and os.path.realpath(path).startswith(_RUN + os.sep)


def _refusal(event: str, given: tuple[object, ...]) -> str | None:
    if event in _REFUSED:
        return f"{event} {given!r:.300}"
    if event == "socket.__new__" and given[1] in _NETWORK:
        return f"a socket of family {given[1]}"
    if event == "open" and given[0] is not None:
        path, mode, flags = given[0], given[1], given[2]
        is_writing = any(mark in str(mode) for mark in "wax+") if mode is not None else int(flags or 0) & _WRITING  # type: ignore[call-overload]  # as above
        return f"writing {path!r}" if is_writing and not _is_writable(path) else None
    if event in _CHANGES:
        # A path beside a folder's descriptor is taken from that folder, which was opened by its path.
        outside = [path for path in given[:1] if isinstance(path, str | bytes) and os.fsdecode(path).startswith(os.sep)]
        return f"{event} {outside[0]!r}" if outside and not _is_writable(outside[0]) else None
    if event == "subprocess.Popen":
        words = [str(word) for word in given[1]] if isinstance(given[1], list | tuple) else [str(given[1])]
        is_own = words[0] == sys.executable and words[1:3] == ["-P", "-m"] and words[3] in _CHILDREN
        is_search = os.path.basename(words[0]) in _SEARCH  # noqa: PTH119 - as little as can be is imported here
        return None if is_own or is_search else f"starting {words}"
    if event == "import" and _is_in_run(given[1]):
        return f"importing {given[1]!r}"
    if event == "compile" and _is_in_run(given[1]):
        return f"compiling {given[1]!r}"
    return None


def _watch(event: str, given: tuple[object, ...]) -> None:
    global _is_busy  # noqa: PLW0603 - a hook has no other memory
    if _is_busy:
        return
    _is_busy = True
    try:
        refusal = _refusal(event, given)
        if refusal is not None:
            with open(_REPORT, "a") as report:  # noqa: PTH123 - as little as can be is imported here
                report.write(refusal + "\n")
            raise PermissionError(f"refused: {refusal}")
    finally:
        _is_busy = False


sys.addaudithook(_watch)
