"""The folder of a studio: uploaded files, the run file, and results.

    .dynid-studio  marker of a studio's folder with a random id, and lock of the studio that uses it
    files/       uploaded files, meshes in subfolders
    run.toml     the run, as the page left it
    studio.json  the same as JSON, with its revision and the role of each file
    results/ID/  one folder per result; complete once it contains studio.json
    session.json port and secret of the browser's cookie, so that an open page reconnects after a restart; the
                 secret is valid for SESSION_SECONDS, and only if nobody else could read or write file and folder
    tmp/         a folder for each start of the studio, which removes it

The studio uses a folder that it created or that was empty, and removes only files that it wrote itself. Its marker is a
private file of this user with the text that the studio writes. The folders above are never links. Folder and files are
private to the user.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dynid.errors import DynidError
from dynid.files import open_file, read_small, write_json, write_whole, writing
from dynid.studio.errors import Refusal

RUN, FACTS = "run.toml", "studio.json"  # the run; facts on the workspace and on each result
SESSION = "session.json"
SESSION_SECONDS = 7 * 24 * 3600  # s: validity of a secret over all restarts, and of its cookie
MARKER = ".dynid-studio"
_MARKER_TEXT = "This folder belongs to `dynid studio`, which writes files into it and removes its own.\n"
_MARKER = re.compile(re.escape(_MARKER_TEXT) + r"(id: [0-9a-f]{32}\n)?")  # earlier versions wrote no id
_MOST_MARKER = 1000  # characters read of a marker
FOLDERS = ("files", "results", "tmp", "meshes")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_WRITING_PREFIX = ".writing-"  # results/.writing-ID: this result is being written, and is removed if incomplete
_SESSION_NAME = re.compile(r"session-[0-9a-f]{16}")
MOTION_FILES = ("motion.csv", "motion.yaml")  # files of a motion that the controller of a robot follows
_NO_WARNINGS_STORED = ("It is not known what this motion was checked against: watch the first run at low speed, one "
                       "hand on the emergency stop.")
ROLES = ("robot", "log", "validation", "mesh", "limits", "actuators")
EMPTY: Mapping[str, Any] = {
    "robot": "", "logs": [], "validate_on": [], "method": "auto", "options": {},
    "model": {"python": None, "friction": [], "rotor": False, "own_terms": None, "terms": [], "flexible": None},
    "log": {}, "prepare": {}, "controller": None, "simulation": {"run": True, "horizon": 0.5}, "essential": None,
    "gravity": None, "only": [], "lock": {}, "known": {}, "payloads": {}, "blocks": 10, "stream_rows": None}
PATH_PART_PATTERN = re.compile(r"[\w(][\w.+ ()@=,-]{0,119}")
RESULT_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z]{1,12}(-[0-9]{1,3})?")
FILE_NAME_PATTERN = re.compile(r"[\w(][\w.+ ()-]{0,119}")


@dataclass(frozen=True)
class Caps:
    """Size limits of one file and of all files, bytes."""

    file: int = 1 << 30
    total: int = 4 << 30


class StudioFolder:
    """The folder of a studio with its uploaded files, run file and results. caps: size limits of uploads."""

    def __init__(self, folder: Path, caps: Caps | None = None) -> None:
        self.folder, self.caps = folder.resolve(), caps or Caps()
        self.lock = claim(self.folder)  # before any other change
        self.files, self.results = self.folder / "files", self.folder / "results"
        sessions = self.folder / "tmp"
        self.temporary = sessions / f"session-{secrets.token_hex(8)}"
        self._was_private = _is_private(self.folder.stat())
        with writing(self.folder):
            for place in (self.folder, self.files, self.results, sessions):
                _make_private(place)
            for left in sessions.iterdir():
                if _SESSION_NAME.fullmatch(left.name):
                    shutil.rmtree(left, ignore_errors=True)
            self.temporary.mkdir(mode=0o700)
        for left in self.results.glob(f"{_WRITING_PREFIX}*"):
            self.settle_result(left.name.removeprefix(_WRITING_PREFIX))
        said = self._read_state()
        self.revision: int = said.get("revision", 0)
        self.settings: dict[str, Any] = said.get("settings") or dict(EMPTY)
        self.run_toml: str = said.get("run_toml") or 'robot = ""\nlogs = []\n'
        self.roles: dict[str, str] = said.get("roles", {})
        self.source: str | None = said.get("source")

    def _read_state(self) -> dict[str, Any]:
        try:
            said = json.loads(read_small(self.folder / FACTS, follow=False))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as problem:
            raise DynidError(f"{self.folder / FACTS} cannot be read: {problem}", "remove it to start again") from None
        return said if isinstance(said, dict) else {}

    def begin_result(self, identity: str) -> None:
        """Record that a result is about to be written."""
        with writing(self.results):
            os.close(os.open(self.results / f"{_WRITING_PREFIX}{identity}", os.O_WRONLY | os.O_CREAT | _NO_LINK, 0o600))

    def settle_result(self, identity: str) -> None:
        """Remove a recorded result if it is incomplete, and remove its record."""
        if RESULT_ID.fullmatch(identity) and not (self.results / identity / FACTS).is_file():
            shutil.rmtree(self.results / identity, ignore_errors=True)
        (self.results / f"{_WRITING_PREFIX}{identity}").unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the temporary files since the start of the studio, and release its folder."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.lock.close()

    def session(self) -> tuple[int, str] | None:
        """Port and secret of the last studio on this folder.

        None if there was none, if the secret is older than SESSION_SECONDS, or if another user could have read or
        replaced it: file and folder must have been private before this start.
        """
        if not self._was_private:
            return None
        try:
            with open_file(self.folder / SESSION, follow=False) as file:
                if not _is_private(os.fstat(file.fileno())):
                    return None
                said = json.load(file)
            port, secret, created = int(said["port"]), str(said["secret"]), float(said["created"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (port, secret) if secret and 0.0 <= time.time() - created <= SESSION_SECONDS else None

    def keep_session(self, port: int, secret: str) -> None:
        """Store port and secret, readable by the user alone; store nothing if the file system has no private files.

        An existing secret keeps its time of creation.
        """
        if self.session() == (port, secret):
            return
        self.forget_session()
        if not _is_private(self.folder.stat()):
            return
        with writing(self.folder / SESSION):
            handle, held = tempfile.mkstemp(dir=self.temporary)  # private from the first byte on
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"port": port, "secret": secret, "created": time.time()}, file)
            os.replace(held, self.folder / SESSION)

    def forget_session(self) -> None:
        """Remove port and secret of the last studio, which invalidates its cookie."""
        with writing(self.folder / SESSION):
            (self.folder / SESSION).unlink(missing_ok=True)

    def keep(self, settings: Mapping[str, Any], run_toml: str) -> None:
        """Store new settings: first the run file, then the state, each atomically; the revision is increased."""
        with write_whole(self.folder / RUN) as file:
            file.write(run_toml)
        (self.folder / RUN).chmod(0o600)
        self.settings, self.run_toml = dict(settings), run_toml
        self._keep_state()

    def _keep_state(self) -> None:
        self.revision += 1
        write_json(self.folder / FACTS, {"revision": self.revision, "settings": self.settings, "roles": self.roles,
                                         "run_toml": self.run_toml, "source": self.source})
        (self.folder / FACTS).chmod(0o600)

    # -- files --------------------------------------------------------------------------------------
    def file_path(self, name: str, role: str | None = None) -> Path:
        """Return the path of a file by its name, which may contain folders for meshes."""
        parts = name.split("/")
        fits = len(parts) <= 8 and all(PATH_PART_PATTERN.fullmatch(part) and not part.endswith((".", " "))
                                       for part in parts)
        if not fits or (len(parts) > 1 and role not in (None, "mesh")):
            raise Refusal(400, "a file name may contain only letters, digits and . _ - + "
                               "( ), at most 120 of them, and folders only for meshes", where=f"file {name[:120]}")
        path = self.files.joinpath(*parts)
        if not path.resolve().is_relative_to(self.files):
            raise Refusal(400, "a file's name must stay inside the studio's folder", where=f"file {name[:120]}")
        return path

    async def upload(self, name: str, role: str, length: int | None, body: AsyncIterator[bytes]) -> dict[str, Any]:
        """Store an upload under a name, completely or not at all."""
        if role not in ROLES:
            raise Refusal(400, f"a file's role is one of {', '.join(ROLES)}", where=f"file {name[:120]}")
        path = self.file_path(name, role)
        if role == "robot" and path.suffix.lower() == ".xacro":
            raise Refusal(400, "a xacro file is a program that reads other files; run it yourself (xacro robot.xacro > "
                               "robot.urdf) and give the URDF", where=f"file {name}")
        others = sum(one["bytes"] for one in self.listed() if one["name"] != name)
        most = min(self.caps.file, self.caps.total - others)
        if length is not None and length > most:
            raise self._too_large(name, others)
        handle, held = tempfile.mkstemp(dir=self.temporary)
        try:
            with writing(path), os.fdopen(handle, "wb") as file:
                async for chunk in body:
                    if file.tell() + len(chunk) > most:
                        raise self._too_large(name, others)
                    file.write(chunk)
            with writing(path):
                for folder in reversed(path.relative_to(self.files).parents):
                    (self.files / folder).mkdir(mode=0o700, exist_ok=True)
                os.replace(held, path)
        finally:
            Path(held).unlink(missing_ok=True)
        self.adopt({name: role})
        return {**self._facts(path), "same_as": self._same_as(path)}

    def adopt(self, roles: Mapping[str, str]) -> None:
        """Record the role of files in the folder; roles by name."""
        self.roles.update(roles)
        self._keep_state()

    def _same_as(self, path: Path) -> str | None:
        """Return the name of another uploaded file with the same size and content, or None."""
        size = path.stat().st_size
        others = [one for one in sorted(self.files.rglob("*"))
                  if _is_own_file(one) and one != path and one.stat().st_size == size]
        same = next((one for one in others if filecmp.cmp(path, one, shallow=False)), None)
        return None if same is None else same.relative_to(self.files).as_posix()

    def _too_large(self, name: str, others: int) -> Refusal:
        if others + self.caps.file <= self.caps.total:
            return Refusal(413, f"the file is larger than {_mega(self.caps.file)}, the limit of "
                                "the studio", hint="shorten it, or use dynid at the command line", where=f"file {name}")
        return Refusal(413, f"with this file the studio would contain more than {_mega(self.caps.total)}",
                       hint="remove files that are not needed", where=f"file {name}")

    def remove(self, name: str) -> None:
        """Delete an uploaded file."""
        path = self.file_path(name)
        if not path.is_file():
            raise Refusal(404, f"there is no file {name}", where=f"file {name}")
        path.unlink()
        self.roles.pop(name, None)
        self._keep_state()

    def _facts(self, path: Path) -> dict[str, Any]:
        name = path.relative_to(self.files).as_posix()
        return {"name": name, "path": f"files/{name}", "bytes": path.stat().st_size,
                "role": self.roles.get(name, "log")}

    def listed(self) -> list[dict[str, Any]]:
        """All uploaded files with their sizes and roles, by name."""
        return [self._facts(path) for path in sorted(self.files.rglob("*")) if _is_own_file(path)]

    # -- results ------------------------------------------------------------------------------------
    def result(self, identity: str) -> Path:
        """Return the path of the folder of a result."""
        folder = self.results / identity
        if not RESULT_ID.fullmatch(identity) or folder.is_symlink() or not _is_own_file(folder / FACTS):
            raise Refusal(404, f"the studio's folder has no result {identity[:40]}")
        return folder

    def result_file(self, identity: str, name: str) -> Path:
        """Return the path of a file of a result."""
        folder = self.result(identity)
        if not FILE_NAME_PATTERN.fullmatch(name) or not _is_own_file(folder / name):
            raise Refusal(404, f"result {identity} has no file {name[:120]}")
        return folder / name

    def motion_file(self, identity: str, name: str, is_confirmed: bool) -> Path:
        """Return the path of a motion for a robot; refused without confirmation if there are warnings about it."""
        path = self.result_file(identity, name)
        meta = json.loads(read_small(path.parent / FACTS, follow=False))
        warnings = _with_warnings(meta)["warnings"]
        if warnings and not is_confirmed:
            raise Refusal(409, " ".join(warnings), hint="confirm this in the step Motion before you download the "
                                                        "motion", where="motion.confirmed")
        return path

    def result_facts(self) -> list[dict[str, Any]]:
        """Return all complete results, the newest first."""
        found = []
        for folder in sorted(self.results.iterdir(), reverse=True):
            try:
                meta = json.loads(read_small(self.result(folder.name) / FACTS, follow=False))
            except (OSError, ValueError, Refusal):
                continue
            names = sorted(path.name for path in folder.iterdir() if _is_own_file(path) and path.name[0] != ".")
            found.append({"id": folder.name, **_with_warnings(meta), "files": [one for one in names if one != FACTS]})
        return found


def claim(folder: Path) -> IO[str]:
    """Return the locked marker of a studio's folder, which is created if the folder does not exist or is empty.

    Raises:
        DynidError: the folder contains other files and no marker, or another studio uses it. Nothing is changed then.
    """
    marker = folder / MARKER
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = {path.name for path in folder.iterdir()} - {MARKER}
        if marker.is_symlink() or (marker.exists() and not marker.is_file()) or (others and not marker.exists()):
            raise _not_own(folder)
        link = next((name for name in FOLDERS if (folder / name).is_symlink()), None)
        if link is not None:
            raise DynidError(f"{folder / link} is a link, which the studio did not make, so the studio does not write "
                             "there", "give a new or empty folder with --folder", code="not-a-studio-folder")
        handle = os.open(marker, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
    file = os.fdopen(handle, "r+", encoding="utf-8", errors="replace")
    try:
        _lock(file, folder)
        text, facts = file.read(_MOST_MARKER), os.fstat(handle)
        is_empty = not others and not text  # new, or the first start was ended before it wrote the marker
        if not is_empty and not (_MARKER.fullmatch(text) and _belongs_to_user(facts)):
            raise _not_own(folder)
        if len(text) <= len(_MARKER_TEXT):
            file.seek(0)
            file.write(f"{_MARKER_TEXT}id: {secrets.token_hex(16)}\n")
            file.flush()
    except BaseException:
        file.close()
        raise
    return file


def _lock(file: IO[str], folder: Path) -> None:
    """Lock the marker of a folder; raise an error if another studio holds it."""
    try:
        import fcntl
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # systems without such locks have none here
        pass
    except OSError:
        raise DynidError(f"another studio is using {folder}", "use that studio, or give another --folder",
                         code="studio-in-use") from None


def _not_own(folder: Path) -> DynidError:
    return DynidError(f"{folder} is not empty and is not a folder of the studio, so the studio does not write there",
                      "give a new or empty folder with --folder", code="not-a-studio-folder")


def _make_private(place: Path) -> None:
    """Create a folder that only this user can read, or change the mode of the existing one; a link is refused."""
    place.mkdir(mode=0o700, exist_ok=True)
    if os.name != "posix":
        return place.chmod(0o700)
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
    try:
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


def _is_own_file(path: Path) -> bool:
    """Return whether a path is a regular file and no link."""
    return path.is_file() and not path.is_symlink()


def _belongs_to_user(facts: os.stat_result) -> bool:
    """Return whether a file belongs to this user under one name, and nobody else can write it."""
    return not hasattr(os, "geteuid") or (
        stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1
        and not facts.st_mode & 0o022)


def _with_warnings(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a result, with a warning for a motion that an earlier version stored without warnings."""
    return {"warnings": [_NO_WARNINGS_STORED], **meta} if meta.get("kind") == "motion" else meta


def _is_private(facts: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and nobody else can read or write it."""
    return hasattr(os, "geteuid") and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077


def digest(path: Path) -> str:
    """Return the SHA-256 of a small file."""
    return hashlib.sha256(read_small(path)).hexdigest()


def _mega(size: int) -> str:
    return f"{size / (1 << 20):.3g} MB"
