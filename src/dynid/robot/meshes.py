"""Meshes: surfaces of triangles from STL, OBJ and, if the package pycollada is installed, DAE files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import RobotError

MAX_MESH_BYTES = 256 << 20  # bytes
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_STL_HEADER_BYTES = 84  # bytes of a binary STL before its triangles


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface: points (points, 3), in the units of its file, and triangles (triangles, 3) between them."""

    points: Array
    triangles: Ints


def read_mesh(path: str | Path) -> Mesh:
    """Return the mesh of a file, by its extension, without materials and normals."""
    path = Path(path)
    reader = _MESH_READERS.get(path.suffix.lower())
    if reader is None:
        raise RobotError(f"mesh '{path.name}' has an unknown format; known formats are {', '.join(_MESH_READERS)}",
                         "convert it to STL", code="unknown-mesh-format")
    try:
        if path.stat().st_size > MAX_MESH_BYTES:
            raise RobotError(f"mesh '{path.name}' is larger than {MAX_MESH_BYTES >> 20} MB; use a mesh with fewer "
                             "triangles", code="mesh-too-large")
        mesh = reader(path)
    except OSError as problem:
        raise RobotError(f"mesh '{path.name}' cannot be read: {problem.strerror or problem}",
                         code="unreadable-file") from None
    except (ValueError, IndexError, UnicodeDecodeError, OverflowError) as problem:
        raise RobotError(f"mesh '{path.name}' is damaged: {problem}", code="damaged-mesh") from None
    if not len(mesh.triangles):
        raise RobotError(f"mesh '{path.name}' contains no triangles", code="empty-mesh")
    if not np.all(np.isfinite(mesh.points)):
        raise RobotError(f"mesh '{path.name}' is damaged: a coordinate is not a finite number", code="damaged-mesh")
    if mesh.triangles.min() < 0 or mesh.triangles.max() >= len(mesh.points):
        raise RobotError(f"mesh '{path.name}' is damaged: a triangle refers to a vertex that does not exist",
                         code="damaged-mesh")
    return mesh


class MeshFiles:
    """Mesh files below a folder, found by the names in robot files.

    A name such as package://arm_description/meshes/link1.stl has no known location: the file whose path agrees in
    most folders from its end is used. Files outside the folder are never used.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        self._paths: dict[str, list[Path]] = {}
        for path in sorted(self.folder.rglob("*")):
            inside = path.resolve().is_relative_to(self.folder)
            if inside and path.suffix.lower() in _MESH_READERS and path.is_file():
                self._paths.setdefault(path.name.lower(), []).append(path)

    def find(self, name: str) -> Path | None:
        """Return the file that a robot file refers to by `name`; None if there is none."""
        wanted = _parts(name)
        if not wanted:
            return None
        found = self._paths.get(wanted[-1].lower(), [])
        return max(found, key=lambda path: _agreement(path.relative_to(self.folder).parts, wanted), default=None)


def _parts(name: str) -> tuple[str, ...]:
    """Return the folders and the file name of a mesh name, without its prefix."""
    plain = name.rpartition("://")[2].replace("\\", "/")
    return tuple(part for part in PurePosixPath(plain).parts if part not in ("/", ".", ".."))


def _agreement(parts: Iterable[str], wanted: tuple[str, ...]) -> int:
    """Return how many of the last parts of two paths are equal."""
    count = 0
    for one, other in zip(reversed(tuple(parts)), reversed(wanted), strict=False):
        if one.lower() != other.lower():
            break
        count += 1
    return count


def _read_stl(path: Path) -> Mesh:
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= _STL_HEADER_BYTES else -1
    # Binary files may begin with the word "solid" too: their length says what they are.
    if len(data) == _STL_HEADER_BYTES + count * _FACET.itemsize:
        return _joined(np.frombuffer(data, _FACET, count, _STL_HEADER_BYTES)["corners"].reshape(-1, 3))
    if not data.lstrip().startswith(b"solid"):
        raise ValueError(f"its header states {count} triangles, which does not match the data")
    words = data.decode("ascii", "replace").lower().split()
    corners = [words[i + 1:i + 4] for i, word in enumerate(words) if word == "vertex"]
    if len(corners) % 3 or any(len(one) < 3 for one in corners):
        raise ValueError("a facet does not have three vertices")
    return _joined(np.array(corners, dtype=float).reshape(-1, 3))


def _joined(corners: Array) -> Mesh:
    """Return the mesh of corners (3 triangles, 3), with equal corners merged to one point."""
    points, place = np.unique(corners, axis=0, return_inverse=True)
    return Mesh(points.astype(float), np.reshape(place, (-1, 3)).astype(np.int64))


def _read_obj(path: Path) -> Mesh:
    points: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "v":
            points.append([float(word) for word in words[1:4]])
        elif words[0] == "f":
            numbers = [int(word.partition("/")[0]) for word in words[1:]]
            # Counted from one, or backwards from the last point so far.
            face = [number - 1 if number > 0 else len(points) + number for number in numbers]
            triangles += [(face[0], face[k], face[k + 1]) for k in range(1, len(face) - 1)]
    return Mesh(np.array(points, dtype=float).reshape(-1, 3), np.array(triangles, dtype=np.int64).reshape(-1, 3))


def _read_dae(path: Path) -> Mesh:
    try:
        import collada
    except ImportError:
        raise RobotError(f"mesh '{path.name}' is a COLLADA file, which the package pycollada reads; install it "
                         "(pip install pycollada), or convert the mesh to STL") from None
    try:
        scene = collada.Collada(str(path), ignore=[collada.common.DaeError])
        points, triangles, total = [], [], 0
        for geometry in scene.scene.objects("geometry") if scene.scene else ():
            for part in geometry.primitives():
                surface = part.triangleset() if hasattr(part, "triangleset") else part
                if getattr(surface, "vertex_index", None) is None or surface.vertex_index.shape[-1] != 3:
                    continue  # lines
                points.append(np.asarray(surface.vertex, dtype=float))
                triangles.append(np.asarray(surface.vertex_index, dtype=np.int64) + total)
                total += len(points[-1])
    except OSError:
        raise
    except Exception as problem:  # whatever the package and its XML reader raise
        raise ValueError(str(problem) or type(problem).__name__) from None
    if not points:
        return Mesh(np.empty((0, 3)), np.empty((0, 3), dtype=np.int64))
    # Its unit counts; its axis that points up does not, since viewers of robots leave it aside.
    return Mesh(np.vstack(points) * float(scene.assetInfo.unitmeter or 1.0), np.vstack(triangles))


_MESH_READERS: dict[str, Callable[[Path], Mesh]] = {".stl": _read_stl, ".obj": _read_obj, ".dae": _read_dae}
