"""Damaged and dishonest binary logs: cut anywhere they end in one sentence, and what they declare is not believed."""

from __future__ import annotations

import gzip
import resource
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.originals import ARRAYS, array_file, bag, text_log
from refusals import refused
from scipy.io import savemat

from dynid.errors import RecordingError
from dynid.recording.log_reading import read

KINDS = ("csv.gz", "npz", "packed.npz", "mat", "h5", "parquet", "bag", "db3", "mcap")


def content_of(kind: str, folder: Path) -> bytes:
    if kind == "csv.gz":
        return gzip.compress(text_log().encode())
    return bag(folder / f"made.{kind}", kind) if kind in ("bag", "db3", "mcap") else array_file(kind, ARRAYS, folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_log_is_a_sentence_that_names_it(tmp_path, kind):
    whole, path = content_of(kind, tmp_path), tmp_path / f"log.{kind}"
    path.write_bytes(whole)
    assert len(read(path)) == len(ARRAYS["time"])
    for share in np.linspace(0.02, 0.98, 25):
        path.write_bytes(whole[:int(share * len(whole))])
        with pytest.raises(RecordingError, match=f"log.{kind}") as problem:
            read(path)
        assert "\n" not in str(problem.value)


def test_a_cut_log_at_the_command_line_is_not_called_interrupted(tmp_path, capfd):
    from dynid.cli.main import main
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text_log().encode())[:-20])
    with pytest.raises(SystemExit) as left:
        main(["identify", "scara2", str(tmp_path / "log.csv.gz")])
    said = capfd.readouterr().err
    assert left.value.code == 2 and "log.csv.gz" in said and "Stopped" not in said


def header(count: int) -> bytes:
    """The head of an NPY file that says it holds so many doubles."""
    said = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + said.ljust(117).encode() + b"\n"


def growth(path: Path) -> float:
    """Megabytes that the process grows by when a log is refused."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused(RecordingError, "too-large", path.name):
        read(path)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


@pytest.mark.parametrize("shape", [(10**12,), (10**12, 2), (10, 10**12)])
def test_hdf5_that_declares_more_than_it_holds(tmp_path, shape):
    with h5py.File(tmp_path / "log.h5", "w") as file:
        chunk = tuple(min(1024, size) for size in shape)
        for name in ("time", "q", "tau"):
            of = shape[:1] if name == "time" else shape
            file.create_dataset(name, of, "f8", chunks=chunk[:len(of)], compression="gzip")
    assert growth(tmp_path / "log.h5") < 100


def test_packed_arrays_that_unpack_to_gigabytes(tmp_path):
    with zipfile.ZipFile(tmp_path / "log.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, \
            archive.open("time.npy", "w", force_zip64=True) as file:
        file.write(header(200_000_000))
        for _ in range(280):
            file.write(bytes(1 << 20))
    assert growth(tmp_path / "log.npz") < 100


def test_packed_matlab_variables_that_unpack_to_gigabytes(tmp_path):
    savemat(tmp_path / "log.mat", {"time": np.zeros(34 << 20)}, do_compression=True)
    assert growth(tmp_path / "log.mat") < 100


def test_parquet_of_one_value_repeated(tmp_path):
    ones = pa.array(np.zeros(12 << 20))
    pq.write_table(pa.table({name: ones for name in ("time", "q1", "tau1")}), tmp_path / "log.parquet")
    assert growth(tmp_path / "log.parquet") < 100


def test_a_table_of_zeros_in_gzip(tmp_path):
    packer = zlib.compressobj(1, wbits=31)
    head, rows = (packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
                  for text in (b"time,q1,tau1\n", b"0,0,0\n" * (1 << 18)))
    (tmp_path / "log.csv.gz").write_bytes(head + 720 * rows)  # flushed blocks stand alone, so one serves for all
    assert growth(tmp_path / "log.csv.gz") < 100


def test_a_header_of_another_size_is_a_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        archive.writestr("time.npy", header(1000) + bytes(80))
    with refused(RecordingError, "damaged-file", "log.npz"):
        read(tmp_path / "log.npz")
