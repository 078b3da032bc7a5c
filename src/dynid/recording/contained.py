"""Check that the content of a log file refers to no other files."""

from __future__ import annotations

from pathlib import Path

from dynid.errors import RecordingError
from dynid.recording.mat_structure import datasets_by_path
from dynid.recording.rosbag import check_bag


def check_contained(path: Path) -> None:
    """Refuse an HDF5, MATLAB 7.3 or bag file with data in other files; readers report damaged files."""
    if path.is_dir():
        check_bag(path)
        return
    try:
        import h5py
    except ImportError:  # without the package, such a file is not read either
        return
    if not path.is_file() or not h5py.is_hdf5(path):
        return
    try:
        with h5py.File(path, "r") as file:
            datasets_by_path(h5py, file, path)
    except RecordingError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return  # damaged: its reader reports that
