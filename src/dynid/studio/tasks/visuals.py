"""Visual geometry of a robot for the page: primitives, and meshes as binary files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RobotError
from dynid.files import write_whole
from dynid.robot import Robot
from dynid.robot.meshes import Mesh, MeshFiles, read_mesh
from dynid.robot.visuals import Visual, visuals
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.numbers import plain

FOLDER = "meshes"


def visual_facts(robot: Robot, source: str, bounds: Confinement) -> list[dict[str, Any]]:
    """Return the visuals of each body, with a message for each missing mesh. source: the robot's name in the run."""
    places = _MeshPlaces(source, bounds)
    return [_facts(one, places, bounds.folder / FOLDER) for one in visuals(robot, bounds.folder / source)]


class _MeshPlaces:
    """Folders that are searched for meshes, opened at first use: uploads, and the folder of a robot of the user's
    own run file."""

    def __init__(self, source: str, bounds: Confinement) -> None:
        own = (bounds.folder / source).resolve()
        beside = [own.parent, *([own.parent.parent] if (own.parent.parent / "meshes").is_dir() else [])]
        self._folders = [bounds.files, *(beside if own in bounds.trusted else [])]
        self._opened: list[MeshFiles] | None = None

    def find(self, name: str) -> Path | None:
        if self._opened is None:
            self._opened = [MeshFiles(folder) for folder in self._folders]
        return next((path for files in self._opened if (path := files.find(name)) is not None), None)


def _facts(one: Visual, places: _MeshPlaces, folder: Path) -> dict[str, Any]:
    mesh, problem = None, None
    if one.mesh is not None:
        path = places.find(one.mesh)
        if path is None:
            problem = f"{one.mesh} is not uploaded"
        else:
            try:
                mesh = _stored(path, folder)
            except RobotError as refused:
                problem = str(refused)
    return {"body": one.body, "link": one.link, "kind": one.kind, "size": plain(one.size),
            "pose": plain(one.pose.ravel()), "color": list(one.color), "mesh": mesh, "problem": problem}


def _stored(path: Path, folder: Path) -> str:
    """Return the name of a mesh's binary file, and write it if it does not exist."""
    said = path.stat()
    name = hashlib.sha256(f"{path}:{said.st_size}:{said.st_mtime_ns}".encode()).hexdigest()[:32]
    if not (folder / f"{name}.bin").exists():
        mesh = read_mesh(path)
        with write_whole(folder / f"{name}.bin", "wb") as file:
            file.write(packed(mesh))
    return name


def packed(mesh: Mesh) -> bytes:
    """Return the numbers of points and triangles (uint32), points (float32), triangles (uint32), little-endian."""
    head = np.array([len(mesh.points), len(mesh.triangles)], dtype="<u4")
    return b"".join((head.tobytes(), mesh.points.astype("<f4").tobytes(), mesh.triangles.astype("<u4").tobytes()))
