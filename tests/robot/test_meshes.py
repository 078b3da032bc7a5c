"""Meshes, against trimesh."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RobotError
from dynid.robot.visual_shapes import Mesh, MeshFiles, read_mesh

trimesh = pytest.importorskip("trimesh")


def area_and_volume(mesh: Mesh) -> tuple[float, float]:
    a, b, c = (mesh.points[mesh.triangles[:, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    return 0.5 * float(np.linalg.norm(cross, axis=1).sum()), float((a * cross).sum()) / 6.0


@pytest.mark.parametrize(("ending", "kind"), [("stl", "stl"), ("STL", "stl_ascii"), ("obj", "obj"), ("dae", "dae")])
def test_a_mesh_has_the_surface_and_volume_of_what_was_written(tmp_path: Path, ending: str, kind: str) -> None:
    if ending == "dae":
        pytest.importorskip("collada")  # writes the file
    written = trimesh.creation.torus(0.3, 0.1)
    written.apply_translation([0.5, -0.2, 0.1])
    text = written.export(file_type=kind)
    file = tmp_path / f"torus.{ending}"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    mesh = read_mesh(file)
    np.testing.assert_allclose(area_and_volume(mesh), (written.area, written.volume), rtol=1e-5)
    np.testing.assert_allclose(mesh.points.min(axis=0), written.bounds[0], atol=1e-6)
    assert len(mesh.points) == len(written.vertices) or ending == "dae"


def test_faces_with_more_corners_and_numbers_from_the_end(tmp_path: Path) -> None:
    file = tmp_path / "square.obj"
    file.write_text("v 0 0 0\nv 1 0 0\nv 1 1 0 1.0\nv 0 1 0\nvt 0 0\nf -4/1 -3/1 -2/1 -1/1\n")
    mesh = read_mesh(file)
    assert mesh.triangles.tolist() == [[0, 1, 2], [0, 2, 3]]


@pytest.mark.parametrize(("name", "content", "words"), [
    ("a.stl", b"", ("damaged-mesh", "'a.stl'")),
    ("a.stl", b"\0" * 80 + struct.pack("<I", 9) + b"\0" * 50, ("damaged-mesh", "'a.stl'", "9")),
    ("a.stl", b"solid a\nfacet\nvertex 1 2 3\nendsolid", ("damaged-mesh", "'a.stl'")),
    ("a.obj", b"f 1 2 3\n", ("damaged-mesh", "'a.obj'")),
    ("a.obj", b"v 1 2 x\n", ("damaged-mesh", "'a.obj'")),
    ("a.obj", b"v nan 0 0\nv 0 0 0\nv 1 1 1\nf 1 2 3\n", ("damaged-mesh", "'a.obj'")),
    ("a.dae", b"<COLLADA/>", ("empty-mesh", "a.dae")), ("a.dae", b"<COLLADA>", ("damaged-mesh", "a.dae")),
    ("a.dae", b'<!DOCTYPE a [<!ENTITY b "c">]><COLLADA>&b;</COLLADA>', ("damaged-mesh", "a.dae")),
    ("a.dae", b'<COLLADA><scene><instance_visual_scene url="#a"/></scene></COLLADA>', ("damaged-mesh", "#a")),
    ("a.dae", b'<COLLADA><library_nodes><node id="a"><instance_node url="#a"/><instance_node url="#a"/></node>'
     b'</library_nodes><library_visual_scenes><visual_scene id="s"><node><instance_node url="#a"/></node>'
     b'</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>',
     ("damaged-mesh", "nested")),
    ("a.glb", b"glTF", ("unknown-mesh-format", "'a.glb'")), ("a.obj", b"", ("empty-mesh", "'a.obj'"))])
def test_bad_meshes_are_a_sentence(tmp_path: Path, name: str, content: bytes, words: tuple[str, ...]) -> None:
    (tmp_path / name).write_bytes(content)
    with refused(RobotError, *words):
        read_mesh(tmp_path / name)


def test_mesh_files_are_found_by_the_end_of_their_names_and_never_outside(tmp_path: Path) -> None:
    root = tmp_path / "robot"
    for name in ("a/visual/link.stl", "b/visual/link.stl", "link2.obj"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    (tmp_path / "secret.stl").write_bytes(b"x")
    (root / "inside.stl").symlink_to(tmp_path / "secret.stl")
    files = MeshFiles(root)
    assert files.find("package://arm/b/visual/link.stl") == root / "b/visual/link.stl"
    assert files.find(f"file://{tmp_path}/elsewhere/a/visual/LINK.STL") == root / "a/visual/link.stl"
    assert files.find("link2.obj") == root / "link2.obj"
    for name in ("../secret.stl", "/secret.stl", "inside.stl", "", "package://", "no.stl"):
        assert files.find(name) is None


@pytest.mark.filterwarnings("ignore:the matrix subclass")  # of pycollada
def test_nodes_of_a_collada_scene_are_placed_as_by_pycollada(tmp_path: Path) -> None:
    collada = pytest.importorskip("collada")
    file = tmp_path / "scene.dae"
    file.write_text("""<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
        <asset><unit name="millimeter" meter="0.001"/><up_axis>Z_UP</up_axis></asset>
        <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array id="pa" count="12">0 0 0 100 0 0 100 200 0 0 200 50</float_array><technique_common>
        <accessor source="#pa" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
        <param name="Z" type="float"/></accessor></technique_common></source>
        <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
        <polylist count="2"><input semantic="VERTEX" source="#v" offset="0"/><vcount>4 3</vcount>
        <p>0 1 2 3 0 2 1</p></polylist></mesh></geometry></library_geometries>
        <library_visual_scenes><visual_scene id="s"><node><translate>10 20 30</translate><rotate>0.6 0 0.8 40</rotate>
        <scale>2 3 4</scale><instance_geometry url="#g"/><node><matrix>0 -1 0 5 1 0 0 6 0 0 1 7 0 0 0 1</matrix>
        <instance_geometry url="#g"/></node></node></visual_scene></library_visual_scenes>
        <scene><instance_visual_scene url="#s"/></scene></COLLADA>""", encoding="utf-8")
    expected = np.vstack([part.triangleset().vertex[part.triangleset().vertex_index].reshape(-1, 3)
                          for geometry in collada.Collada(str(file)).scene.objects("geometry")
                          for part in geometry.primitives()]) * 1e-3
    mesh = read_mesh(file)
    found = mesh.points[mesh.triangles].reshape(-1, 3)
    order = [np.lexsort(np.round(points, 7).T) for points in (found, expected)]
    np.testing.assert_allclose(found[order[0]], expected[order[1]], atol=1e-7)
