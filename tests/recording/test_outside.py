"""A log that takes anything from other files is refused by whoever reads it, whatever the file is called."""

from __future__ import annotations

import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from bags import new_bag
from refusals import refused
from ruamel.yaml import YAML
from scipy.io import savemat

from dynid.cli.main import main
from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.recording.rosbag import check_contained

SECRET = b"password of somebody else"
KINDS = ("external storage", "external link", "external link in a group", "soft link to an external link", "virtual")
NAMES = ("l.h5", "l.csv", "l.nc", "l.npz", "l.mat", "l")


def made(folder: Path, kind: str, name: str, *, matlab: bool = False) -> Path:
    """An HDF5 file whose positions lie in another file."""
    (folder / "secret.txt").write_bytes(SECRET)
    with h5py.File(folder / "other.h5", "w") as other:
        other["q"] = np.ones((50, 2))
    path = folder / name
    with h5py.File(path, "w", userblock_size=512 if matlab else 0) as file:
        file["t"], file["tau"] = np.arange(50) / 100.0, np.ones((50, 2))
        if kind == "external storage":
            file.create_dataset("q", (5, 5), "u1", external=[(str(folder / "secret.txt"), 0, 25)])
        elif kind == "external link":
            file["q"] = h5py.ExternalLink(str(folder / "other.h5"), "/q")
        elif kind == "external link in a group":
            file.create_group("a/b")["q"] = h5py.ExternalLink("other.h5", "/q")
        elif kind == "soft link to an external link":
            file["far"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
            file["q"] = h5py.SoftLink("/far/q")
        else:
            layout = h5py.VirtualLayout((50, 2), dtype=float)
            layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "q", (50, 2))
            file.create_virtual_dataset("q", layout)
    if matlab:
        with path.open("r+b") as raw:
            raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_hdf5_that_lies_elsewhere_is_refused_by_its_content(tmp_path: Path, kind: str, name: str) -> None:
    path = made(tmp_path, kind, name)
    for look in (read, check_contained):
        with refused(RecordingError, "data-outside"):
            look(path)


@pytest.mark.parametrize("kind", KINDS)
def test_matlab_7_3_that_lies_elsewhere(tmp_path: Path, kind: str) -> None:
    path = made(tmp_path, kind, "l.mat", matlab=True)
    for look in (read, check_contained):
        with refused(RecordingError, "data-outside"):
            look(path)


def test_the_command_line_says_it_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path, "external storage", "l.csv")
    with pytest.raises(SystemExit) as left:
        main(["identify", "scara2", str(path)])
    said = capsys.readouterr().err
    assert left.value.code == 2 and "other files" in said and "Traceback" not in said and SECRET.decode() not in said


def test_a_group_that_holds_itself_is_walked_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "l.h5", "w") as file:
        file["time"] = np.arange(50) / 100.0
        for name in ("q", "tau"):
            file[name] = np.sin(np.arange(100.0)).reshape(50, 2)
        for k in range(12):
            file[f"again{k}"] = file["/"]
    check_contained(tmp_path / "l.h5")
    assert len(read(tmp_path / "l.h5")) == 50


def test_groups_that_are_nested_too_deeply(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "l.h5", "w") as file:
        file.create_group("/".join(["g"] * 40))
    with refused(RecordingError, "nested-too-deeply", "l.h5", "32"):
        read(tmp_path / "l.h5")


@pytest.mark.parametrize("name", ["../t.npy", "/etc/t.npy", "a/../../t.npy", "..\\t.npy", "C:\\t.npy"])
def test_a_member_of_an_archive_that_leads_outside(tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "t.npy", np.zeros(5))
    with zipfile.ZipFile(tmp_path / "l.npz", "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), (tmp_path / "t.npy").read_bytes())
    with refused(RecordingError, "member-outside"):
        read(tmp_path / "l.npz")


def bag(path: Path) -> Path:
    with new_bag(path, "mcap", 10**18) as writer:
        (kind,) = writer.types("sensor_msgs/msg/JointState")
        topic = writer.topic("/joint_states", kind)
        for k in range(50):
            q = np.array([np.sin(0.1 * k), np.cos(0.1 * k)])
            writer.write(topic, kind, 0.01 * k, lambda header, q=q: kind(header, ["a", "b"], q, q, q))
    return path


@pytest.mark.parametrize("name", ["../other/other.mcap", "/etc/passwd", "x/../../other.mcap", "..\\other.mcap"])
def test_a_bag_whose_metadata_lead_outside(tmp_path: Path, name: str) -> None:
    path = bag(tmp_path / "bag")
    assert len(read(path)) == 50
    table = YAML(typ="safe").load((path / "metadata.yaml").read_text())
    table["rosbag2_bagfile_information"]["relative_file_paths"] = ["bag.mcap", name]
    with (path / "metadata.yaml").open("w") as file:
        YAML(typ="safe").dump(table, file)
    for look in (read, check_contained):
        with refused(RecordingError, "file-outside"):
            look(path)


def test_a_bag_whose_file_is_a_link_that_leads_outside(tmp_path: Path) -> None:
    path, other = bag(tmp_path / "bag"), bag(tmp_path / "other")
    (path / "bag.mcap").unlink()
    (path / "bag.mcap").symlink_to(other / "other.mcap")
    with refused(RecordingError, "file-outside"):
        read(path)


def test_logs_that_keep_to_themselves_are_read_as_before(tmp_path: Path) -> None:
    arrays = {"time": np.arange(60) / 100.0, "q": np.sin(np.arange(120.0)).reshape(60, 2), "tau": np.ones((60, 2))}
    with h5py.File(tmp_path / "l.h5", "w") as file:
        for name, array in arrays.items():
            file.create_group("arm").create_dataset(name, data=array) if name == "time" else \
                file["arm"].create_dataset(name, data=array, chunks=(10, 2), compression="gzip", shuffle=True)
        file["link"] = h5py.SoftLink("/arm/q")
    savemat(tmp_path / "l.mat", arrays, do_compression=True)
    for name in ("l.h5", "l.mat"):
        check_contained(tmp_path / name)
        prefix = "arm/" if name == "l.h5" else ""
        found = read(tmp_path / name, **{key: prefix + value for key, value in
                                         (("time", "time"), ("position", "q"), ("torque", "tau"))})
        np.testing.assert_array_equal(found.q, arrays["q"])
