"""Data of the run's robot for the 3-D scene: joints, bodies, frames, and problems of its inertias."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import rotations
from dynid.dynamics.following import closed_chain, tree_motion
from dynid.errors import DynidError, RobotError
from dynid.files import write_whole
from dynid.floating.contacts import find_feet
from dynid.report.geometry import configurations, half_axes, mass_centre
from dynid.robot import Robot
from dynid.robot.check import inertia_problems
from dynid.robot.visual_shapes import Mesh, MeshFiles, Visual, read_mesh, visuals
from dynid.runs.consistency_check import inspect_robot
from dynid.runs.models import make_robot
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel

FOLDER = "meshes"


def robot(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return the robot of the settings, or of the uploaded file `params["candidate"]` before it is selected."""
    candidate = params.get("candidate")
    settings = run_settings(bounds, logs=False, robot=candidate if isinstance(candidate, str) else None)
    with bounds.trusting(settings.robot):
        found = make_robot(settings, allows_free_base=True, as_in_file=True)
        drawn = visual_facts(found, settings.robot, bounds)
    return {**robot_facts(found), "visuals": drawn}


def robot_facts(found: Robot) -> dict[str, Any]:
    """Return a robot as plain data for the 3-D scene; poses are listed row by row."""
    tree = found if found.followers is None else found.followers.tree
    free = range(found.dof) if found.followers is None else found.followers.free
    return {
        "name": found.name, "source": found.source, "dof": found.dof, "free_base": found.has_free_base,
        "feet": list(find_feet(found)) if found.has_free_base else [],
        "closed": found.followers is not None, "gravity": plain(found.gravity), "warnings": list(found.warnings),
        "inspection": inspect_robot(found), "joints": _joints(tree, tuple(free)), "bodies": _bodies(tree, found),
        "frames": [{"name": one.name, "pose": plain(one.pose.ravel()),
                    "body": one.body if found.followers is None else found.followers.place(one.body)}
                   for one in found.frames],
        "size": _size(tree), "home": plain(_home(found))}


def _joints(tree: Robot, free: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"name": one.name, "kind": one.kind, "parent": one.parent, "before": plain(one.before.ravel()),
             "axis": [0.0, 0.0, 1.0], "after": plain(one.after.ravel()), "lower": plain(one.lower),
             "upper": plain(one.upper), "velocity": plain(one.velocity), "effort": plain(one.effort),
             "free": free.index(i) if i in free else None} for i, one in enumerate(tree.joints)]


def _bodies(tree: Robot, found: Robot) -> list[dict[str, Any]]:
    """Return mass, centre and homogeneous ellipsoid of equal inertia of each link, and problems by link."""
    wrong: dict[str, list[str]] = {}
    for problem in inertia_problems(found):
        if problem.kind != "missing":
            wrong.setdefault(problem.link, []).append(problem.message)
    return [{"name": body.name, "joint": i, **_solid(body.inertia),
             "problems": [said for link in dict.fromkeys((body.name, *(part.link for part in body.parts)))
                          for said in wrong.get(link, ())]}
            for i, body in enumerate(tree.bodies) if not body.virtual]


def _solid(ten: Array | None) -> dict[str, Any]:
    centre = None if ten is None else mass_centre(ten)
    if ten is None or centre is None:
        return {"mass": None if ten is None else plain(ten[9]), "centre": None, "inertia_axes": None,
                "semi_axes": None}
    axes, turn = half_axes(ten)
    return {"mass": plain(ten[9]), "centre": plain(centre), "inertia_axes": plain(turn.ravel()),
            "semi_axes": plain(axes)}


def _home(found: Robot) -> Array:
    """Return an initial posture (dof,): zero if the limits allow it, or one in which the loops close."""
    followers = found.followers
    if followers is not None and followers.loops is not None:
        return closed_chain(found).begin[:found.dof]
    home = np.clip(np.zeros(found.dof), found.limit("lower"), found.limit("upper"))
    if found.has_free_base:  # on the floor of the scene
        home[:found.free_coordinates] = base_coordinates(configurations(found, home[None], None)[:, :7])[0]
    return home


def _size(tree: Robot) -> float:
    """Return the longest path along the joints of a tree, m, at least 0.2."""
    reach = [0.0]
    for i, joint in enumerate(tree.joints):
        step = np.linalg.norm(joint.before[:3, 3]) + np.linalg.norm(joint.after[:3, 3])
        reach.append(float(step) + (reach[joint.parent + 1] if joint.parent < i else 0.0))
    return max(0.2, max(reach))


def pose(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return the positions of all joints of the tree (tree joints,) for those of the independent joints (dof,)."""
    settings = run_settings(bounds, logs=False)
    with bounds.trusting(settings.robot):
        found = make_robot(settings, allows_free_base=True, as_in_file=True)
    try:
        q = np.asarray(params.get("q"), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise DynidError("a posture must be a list of numbers, one for each joint") from None
    if q.shape != (found.dof,) or not np.isfinite(q).all():
        raise DynidError(f"a posture of {found.name} must be {found.dof} finite numbers, one per joint", where="q")
    return {"q_tree": plain(tree_positions(found, q[None])[0])}


def tree_positions(found: Robot, q: Array) -> Array:
    """Return the positions of all joints of the tree (samples, tree joints) for positions q (samples, dof) of the
    independent joints."""
    return q if found.followers is None else tree_motion(found, q).q


def base_coordinates(pose: Array) -> Array:
    """Return the six coordinates (samples, 6) of a free base in the scene, for its pose (samples, 7).

    The coordinates are translations, then rotations about x, y and z in this order, for drawing only.
    """
    turn = rotations(pose[:, 3:])
    angles = np.column_stack([np.arctan2(-turn[:, 1, 2], turn[:, 2, 2]), np.arcsin(np.clip(turn[:, 0, 2], -1.0, 1.0)),
                              np.arctan2(-turn[:, 0, 1], turn[:, 0, 0])])
    return np.hstack([pose[:, :3], np.unwrap(angles, axis=0)])


def visual_facts(robot: Robot, source: str, bounds: Confinement) -> list[dict[str, Any]]:
    """Return the visuals of each body, with a message for each missing mesh. source: the robot's name in the run."""
    places = _MeshPlaces(source, bounds)
    return [_facts(one, places, bounds.folder / FOLDER) for one in visuals(robot, bounds.folder / source)]


class _MeshPlaces:
    """Folders that are searched for meshes, opened at first use: uploads, and the folder of the user's robot file."""

    def __init__(self, source: str, bounds: Confinement) -> None:
        own = (bounds.folder / source).resolve()
        mesh_folders = [own.parent, *([own.parent.parent] if (own.parent.parent / "meshes").is_dir() else [])]
        self._folders = [bounds.files, *(mesh_folders if own in bounds.trusted else [])]
        self._opened: list[MeshFiles] | None = None

    def find(self, name: str) -> Path | None:
        if self._opened is None:
            self._opened = [MeshFiles(folder) for folder in self._folders]
        return next((path for files in self._opened if (path := files.find(name)) is not None), None)


def _facts(one: Visual, places: _MeshPlaces, folder: Path) -> dict[str, Any]:
    path = None if one.mesh is None else places.find(one.mesh)
    mesh, problem = None, None if one.mesh is None or path is not None else f"{one.mesh} is not uploaded"
    if path is not None:
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
    """Return a mesh as little-endian bytes: counts of points and triangles (uint32), points (float32), triangles
    (uint32)."""
    head = np.array([len(mesh.points), len(mesh.triangles)], dtype="<u4")
    return b"".join((head.tobytes(), mesh.points.astype("<f4").tobytes(), mesh.triangles.astype("<u4").tobytes()))
