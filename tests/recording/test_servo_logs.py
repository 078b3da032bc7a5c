"""Logs of servos: BAM, LeRobot datasets, PyTorch tensors, registers; their units, and what is refused by name."""

from __future__ import annotations

import io
import json
import os
import pickle
import resource
import struct
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording.json_tables import PendulumBench, bam_bench, write_bam
from dynid.recording.lerobot import dataset_episodes
from dynid.recording.log_reading import read
from dynid.recording.recording import Recording

ROWS = 200
TICK = 2 * np.pi / 4096


def servo(rate: float = 100.0) -> Recording:
    t = np.arange(ROWS) / rate
    command = 0.8 * np.sin(2 * t)[:, None]
    return Recording.from_commands(t, 0.8 * np.sin(2 * t - 0.1)[:, None], command, joints=("servo",),
                                   voltage=np.full((ROWS, 1), 7.4), temperature=np.full((ROWS, 1), 31.0))


# -- BAM --------------------------------------------------------------------------------------------------
def test_a_log_of_bam_is_written_and_read_again(tmp_path: Path) -> None:
    log = servo()
    bench = PendulumBench(mass=0.5, length=0.15, arm_mass=0.02, kp=16, vin=7.4, motor="sts3215", trajectory="sin")
    path = write_bam(log, bench, tmp_path / "log.json")
    back = read(path)
    for name in ("t", "q", "reference", "voltage", "temperature"):
        np.testing.assert_allclose(getattr(back, name), getattr(log, name), atol=1e-12, err_msg=name)
    assert back.is_torque_free and any("preset 'bam'" in note for note in back.notes)
    assert bam_bench(path) == bench
    table = json.loads(path.read_text())
    assert set(table["entries"][0]) == {"timestamp", "position", "speed", "load", "input_volts", "temp",
                                        "goal_position", "torque_enable"}


def test_entries_with_the_torque_switched_off_are_left_out(tmp_path: Path) -> None:
    path = write_bam(servo(), PendulumBench(0.5, 0.15), tmp_path / "log.json")
    table = json.loads(path.read_text())
    for entry in table["entries"][150:]:
        entry["torque_enable"] = False
    path.write_text(json.dumps(table))
    back = read(path)
    assert len(back) == 150 and any("50 rows with the drive switched off" in note for note in back.notes)


@pytest.mark.parametrize(("change", "names"), [
    ({"entries": []}, ("bad-recording", "entries")), ({"entries": 3}, ("bad-recording", "entries")),
    ({"entries": [{"timestamp": 0.0, "position": 1.0}]}, ("bad-recording", "entry 1", "goal_position")),
    ({"entries": [{"timestamp": 0, "position": "x", "goal_position": 0}]}, ("bad-recording", "entry 1", "position")),
    ({"entries": [{"timestamp": k, "position": None if k == 2 else k, "goal_position": 0} for k in range(5)]},
     ("bad-row", "entry 3", "position")),
])
def test_other_json_files_are_refused(tmp_path: Path, change: dict, names: tuple[str, ...]) -> None:
    (tmp_path / "log.json").write_text(json.dumps({"mass": 1.0, **change}))
    with refused(RecordingError, *names, "log.json"):
        read(tmp_path / "log.json")


@pytest.mark.parametrize("text", ["{", "{" * 100_000, '{"entries": [1, 2]}', "{\x00"])
def test_damaged_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "log.json").write_text(text)
    with refused(RecordingError, "bad-recording", "log.json"):
        read(tmp_path / "log.json")


def test_a_bench_without_its_mass_is_refused(tmp_path: Path) -> None:
    path = write_bam(servo(), PendulumBench(0.5, 0.15), tmp_path / "log.json")
    path.write_text(path.read_text().replace('"mass": 0.5, ', ""))
    with refused(RecordingError, "bad-recording", "mass"):
        bam_bench(path)
    with refused(RecordingError, "bad-recording", "mass"):
        PendulumBench(mass=-1.0, length=0.1)


# -- LeRobot ----------------------------------------------------------------------------------------------
JOINTS = ("shoulder_pan", "gripper")


def dataset(folder: Path, numbers: dict[str, list[tuple[int, np.ndarray, np.ndarray]]], total: int,
            names: object = None) -> Path:
    """A dataset of version 3: file name -> episodes as (number, states, actions)."""
    (folder / "meta").mkdir(parents=True)
    feature = {"dtype": "float32", "shape": [2], "names": names or [f"{joint}.pos" for joint in JOINTS]}
    (folder / "meta" / "info.json").write_text(json.dumps({
        "codebase_version": "v3.0", "robot_type": "so101_follower", "total_episodes": total, "fps": 30,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "features": {"action": feature, "observation.state": feature}}))
    for name, episodes in numbers.items():
        path = folder / "data" / "chunk-000" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        states, actions = (np.concatenate([one[k] for one in episodes]).astype(np.float32) for k in (1, 2))
        counts = [len(one[1]) for one in episodes]
        pq.write_table(pa.table({
            "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(states.ravel()), 2),
            "action": pa.FixedSizeListArray.from_arrays(pa.array(actions.ravel()), 2),
            "timestamp": np.concatenate([np.arange(n) / 30 for n in counts]).astype(np.float32),
            "episode_index": np.concatenate([np.full(n, one[0]) for n, one in zip(counts, episodes, strict=True)]),
        }), path)
    return folder


def episode(number: int, seed: int = 0, low: float = -60.0) -> tuple[int, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed + number)
    actions = np.cumsum(rng.normal(size=(90, 2)), axis=0) + np.array([low, 40.0])
    return number, actions - [1.5, 0.5] + 0.1 * rng.normal(size=(90, 2)), actions


def test_a_lerobot_dataset_is_read_episode_by_episode(tmp_path: Path) -> None:
    one, two, three = episode(0), episode(1), episode(2)
    folder = dataset(tmp_path / "so101", {"file-000": [one, two], "file-001": [three]}, 3)
    for number, states, actions in (one, two, three):
        found = read(folder, episode=number, unit="deg")
        np.testing.assert_allclose(found.q, np.deg2rad(states.astype(np.float32)), rtol=1e-6)
        np.testing.assert_allclose(found.reference, np.deg2rad(actions.astype(np.float32)), rtol=1e-6)
        assert found.joints == JOINTS and found.rate == pytest.approx(30, rel=1e-3) and found.is_torque_free
    with refused(RecordingError, "bad-recording", "degrees or normalised", "log.unit=deg"):
        read(folder, episode=0)
    with refused(RecordingError, "time-backwards", "log.episode=N"):
        read(folder, unit="deg")


def test_missing_episodes_are_named(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "d", {"file-000": [episode(0), episode(2)]}, 4)
    assert dataset_episodes(folder) == ((0, 2), "2 of 4 episodes have no rows in the data files: 1, 3")
    assert any("1, 3" in note for note in read(folder, episode=2, unit="deg").notes)
    with refused(RecordingError, "no-episode", "no episode 3", "1, 3"):
        read(folder, episode=3, unit="deg")


def test_names_in_a_table_as_older_datasets_have_them(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "d", {"episode_000000": [episode(0)]}, 1,
                     names={"motors": [f"{joint}.pos" for joint in JOINTS]})
    assert read(folder, episode=0, unit="deg").joints == JOINTS


def test_normalised_positions_by_a_calibration(tmp_path: Path) -> None:
    """As LeRobot normalises ticks: -100..100 over the range, a gripper 0..100, a reversed servo with the other sign."""
    ticks = np.column_stack([np.linspace(900, 3000, 50), np.linspace(2100, 3300, 50)])
    low, high = np.array([800.0, 2000.0]), np.array([3200.0, 3400.0])
    shares = (ticks - low) / (high - low)
    states = np.column_stack([-(200 * shares[:, 0] - 100), 100 * shares[:, 1]])
    folder = dataset(tmp_path / "d", {"file-000": [(0, states, states + np.array([2.0, 1.0]))]}, 1)
    (folder / "calibration.json").write_text(json.dumps({
        "shoulder_pan": {"id": 1, "drive_mode": 1, "homing_offset": 5, "range_min": 800, "range_max": 3200},
        "gripper": {"id": 6, "drive_mode": 0, "homing_offset": 0, "range_min": 2000, "range_max": 3400}}))
    found = read(folder, episode=0, unit="normalised", calibration="calibration.json")
    np.testing.assert_allclose(found.q[:, 0], (ticks[:, 0] - 2000) * TICK, atol=1e-6)
    np.testing.assert_allclose(found.q[:, 1], (ticks[:, 1] - 2000) * TICK, atol=1e-6)
    plain = read(folder, episode=0, unit="normalised", calibration={"shoulder_pan": [800, 3200],
                                                                    "gripper": [2000, 3400]})
    np.testing.assert_allclose(plain.q, found.q * [-1, 1], atol=1e-6)
    with refused(RecordingError, "no-calibration", "log.calibration"):
        read(folder, episode=0, unit="normalised")
    with refused(RecordingError, "bad-recording", "gripper"):
        read(folder, episode=0, unit="normalised", calibration={"shoulder_pan": [800, 3200]})
    with refused(RecordingError, "bad-recording", "gripper", "range_min"):
        read(folder, episode=0, unit="normalised", calibration={"shoulder_pan": [0, 9], "gripper": [9, 0]})


@pytest.mark.parametrize("text", ["{", "[]", '{"fps": 30}',
                                  '{"total_episodes": 1, "fps": 30, "codebase_version": "v1.6"}'])
def test_a_damaged_description_is_refused(tmp_path: Path, text: str) -> None:
    folder = dataset(tmp_path / "d", {"file-000": [episode(0)]}, 1)
    (folder / "meta" / "info.json").write_text(text)
    with refused(RecordingError, "bad-recording", "info.json"):
        read(folder, episode=0, unit="deg")


def test_a_dataset_without_its_data_is_refused(tmp_path: Path) -> None:
    with refused(RecordingError, "bad-recording", "data files"):
        read(dataset(tmp_path / "d", {}, 1), episode=0, unit="deg")


def test_a_dataset_that_leads_outside_is_refused(tmp_path: Path) -> None:
    other = dataset(tmp_path / "other", {"file-000": [episode(0)]}, 1) / "data" / "chunk-000" / "file-000.parquet"
    folder = dataset(tmp_path / "d", {"file-000": [episode(0)]}, 1)
    link = folder / "data" / "chunk-000" / "file-001.parquet"
    link.symlink_to(other)
    with refused(RecordingError, "bad-recording", "file-001.parquet", "outside"):
        read(folder, episode=0, unit="deg")


# -- PyTorch ----------------------------------------------------------------------------------------------
class FloatStorage:
    """As torch.FloatStorage: pickled by its name."""


def _rebuild_tensor_v2(*arguments: object) -> None:
    raise AssertionError("nothing of the file may be called")


class _Tensor:
    def __init__(self, key: str, array: np.ndarray) -> None:
        self.key, self.array = key, array


class _Saved:
    def __init__(self, key: str, count: int) -> None:
        self.key, self.count = key, count


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules by whose names tensors are pickled; only the pickler looks them up."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch._utils, utils._rebuild_tensor_v2, torch.FloatStorage = utils, _rebuild_tensor_v2, FloatStorage
    monkeypatch.setattr(_rebuild_tensor_v2, "__module__", "torch._utils")
    monkeypatch.setattr(FloatStorage, "__module__", "torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)


def saved(path: Path, content: object, protocol: int = 2) -> Path:
    """A file as torch.save writes it: a zip archive of a pickle and the bytes of the tensors."""
    held: dict[str, bytes] = {}

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            return ("storage", FloatStorage, value.key, "cpu", value.count) if isinstance(value, _Saved) else None

        def reducer_override(self, value: object) -> object:
            if not isinstance(value, _Tensor):
                return NotImplemented
            array = np.ascontiguousarray(value.array, dtype="<f4")
            held[value.key] = array.tobytes()
            strides = tuple(step // 4 for step in array.strides)
            return _rebuild_tensor_v2, (_Saved(value.key, array.size), 0, array.shape, strides, False, {})

    buffer = io.BytesIO()
    Pickler(buffer, protocol=protocol).dump(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chirp_data/data.pkl", buffer.getvalue())
        archive.writestr("chirp_data/byteorder", "little")
        for key, data in held.items():
            archive.writestr(f"chirp_data/data/{key}", data)
        archive.writestr("chirp_data/version", "3\n")
    return path


def chirps() -> dict[str, np.ndarray]:
    t = np.arange(ROWS) / 200
    command = np.sin(t[:, None] * [3.0, 5.0, 7.0])
    return {"time": t, "dof_pos": 0.9 * command + 0.01, "des_dof_pos": command}


@pytest.mark.parametrize("protocol", [2, 4])
def test_tensors_of_pace_are_read_without_torch(tmp_path: Path, fake_torch: None, protocol: int) -> None:
    true = chirps()
    content = {name: _Tensor(str(k), array) for k, (name, array) in enumerate(true.items())}
    found = read(saved(tmp_path / "chirp_data.pt", content, protocol))
    np.testing.assert_array_equal(found.q, true["dof_pos"].astype(np.float32))
    np.testing.assert_array_equal(found.reference, true["des_dof_pos"].astype(np.float32))
    assert found.rate == pytest.approx(200, rel=1e-4) and any("preset 'pace'" in note for note in found.notes)


class _Evil:
    def __reduce__(self) -> object:
        return eval, ("__import__('os').environ.setdefault('DYNID_WAS_HERE', '1')",)


def test_a_pickle_that_calls_anything_is_refused(tmp_path: Path, fake_torch: None,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYNID_WAS_HERE", raising=False)
    path = saved(tmp_path / "evil.pt", {"time": _Evil()})
    with refused(RecordingError, "bad-recording", "evil.pt", "eval"):
        read(path)
    (tmp_path / "plain.pt").write_bytes(pickle.dumps({"time": 1}))
    with refused(RecordingError, "bad-recording", "plain.pt", "pickle"):
        read(tmp_path / "plain.pt")
    assert "DYNID_WAS_HERE" not in os.environ


def _archive(path: Path, pickled: bytes, data: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", pickled)
        if data:
            archive.writestr("a/data/0", data)
    return path


def _tensor_pickle(shape: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", value) for value in values) + b"t"
    return (b"\x80\x02}X\x07\x00\x00\x00dof_posctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n"
            b"FloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQK\x00" + numbers(shape) + numbers(strides)
            + b"\x89}tRs.")


@pytest.mark.parametrize("pickled", [
    b"\x80\x02}r\xff\xff\xff\x7f.",  # memory with a huge number, which an unpickler would make room for
    b"\x80\x02}" + b"}" * 10 + b".", b"\x80\x02", b"", b"\x80\x02t.", b"\x80\x02}(u.", b"\x80\x02h\x05.",
    b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00true" + b"tR.", b"\x80\x02X\x10\x00\x00\x00cut",
    b"\x80\x02\x8e" + struct.pack("<Q", 1 << 60) + b"x", b"\x80\x02i" + b"os\nsystem\n.",
    _tensor_pickle((10**9, 10**3), (0, 0)), _tensor_pickle((4, 4), (4, 1)), _tensor_pickle((-1,), (1,)),
    _tensor_pickle((2,), (-1,)), _tensor_pickle((2, 2, 2, 1), (1, 1, 1, 1)),
])
def test_damaged_descriptions_of_tensors_are_refused(tmp_path: Path, pickled: bytes) -> None:
    path = _archive(tmp_path / "log.pt", pickled, b"\x00" * 12)
    with refused(RecordingError, "bad-recording", "log.pt"):
        read(path)


def test_tensors_are_measured_as_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNID_MAX_UNPACKED_MB", "8")
    path = _archive(tmp_path / "log.pt", _tensor_pickle((1,), (1,)), bytes(40 << 20))
    with refused(RecordingError, "too-large", "log.pt"):
        read(path)


# -- damage -----------------------------------------------------------------------------------------------
def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes with some changed, cut off or put in."""
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(found))) if found else 0
        change = int(rng.integers(4))
        if change == 0 and found:
            found[place] = int(rng.integers(256))
        elif change == 1 and rng.random() < 0.3:
            del found[place:]
        elif change == 2:
            found[place:place + 1] = [b"1e999", b"null", b"-1", b"NaN", b"[]", b"{}"][int(rng.integers(6))]
        else:
            del found[place:place + int(rng.integers(1, 20))]
    return bytes(found)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_end_in_one_sentence(tmp_path: Path, fake_torch: None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    folder = dataset(tmp_path / "d", {"file-000": [episode(0), episode(1)]}, 2)
    tensors = {name: _Tensor(str(k), array) for k, (name, array) in enumerate(chirps().items())}
    files = {tmp_path / "log.json": write_bam(servo(), PendulumBench(0.5, 0.1), tmp_path / "log.json").read_bytes(),
             tmp_path / "log.pt": saved(tmp_path / "log.pt", tensors).read_bytes()}
    files |= {path: path.read_bytes() for path in (folder / "meta" / "info.json",
                                                   folder / "data" / "chunk-000" / "file-000.parquet")}
    refusals = 0
    for path, content in files.items():
        is_dataset = path.is_relative_to(folder)
        for _ in range(40):
            path.write_bytes(damaged(content, rng))
            try:
                read(folder if is_dataset else path, **({"episode": 0, "unit": "deg"} if is_dataset else {}))
            except RecordingError as problem:
                refusals += 1
                assert "\n" not in str(problem)
        path.write_bytes(content)
    assert refusals > 40


# -- registers and plain tables ---------------------------------------------------------------------------
def table(path: Path, columns: dict[str, np.ndarray]) -> Path:
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", comments="", header=",".join(columns))
    return path


def registers(**more: np.ndarray) -> dict[str, np.ndarray]:
    t = np.arange(ROWS) / 100
    goal = np.round(2048 + 600 * np.sin(3 * t))
    return {"time": t, "goal_position_a": goal, "present_position_a": np.round(2048 + 580 * np.sin(3 * t - 0.2)),
            "present_velocity_a": np.round(1740 * np.cos(3 * t - 0.2)), "present_temperature_a": np.full(ROWS, 33),
            "present_current_a": np.round(40 * np.sin(t)), **more}


def test_registers_of_feetech_servos(tmp_path: Path) -> None:
    raw = registers(present_load_a=np.full(ROWS, -250.0), present_voltage_a=np.full(ROWS, 74.0))
    found = read(table(tmp_path / "log.csv", raw))
    np.testing.assert_allclose(found.q[:, 0], (raw["present_position_a"] - 2048) * TICK, rtol=1e-12)
    np.testing.assert_allclose(found.reference[:, 0], (raw["goal_position_a"] - 2048) * TICK, rtol=1e-12)
    np.testing.assert_allclose(found.dq[:, 0], raw["present_velocity_a"] * TICK, rtol=1e-12)
    np.testing.assert_allclose(found.voltage, 7.4)
    np.testing.assert_allclose(found.duty, -0.25)
    np.testing.assert_allclose(found.current[:, 0], 0.0065 * raw["present_current_a"])
    np.testing.assert_allclose(found.temperature, 33)
    with refused(RecordingError, "duty-range", "joint a"):
        read(table(tmp_path / "bad.csv", {**raw, "present_load_a": np.full(ROWS, 1274.0)}))


def test_registers_of_dynamixel_servos(tmp_path: Path) -> None:
    raw = registers(present_pwm_a=np.full(ROWS, 885.0), present_input_voltage_a=np.full(ROWS, 121.0))
    found = read(table(tmp_path / "log.csv", raw))
    np.testing.assert_allclose(found.dq[:, 0], raw["present_velocity_a"] * 0.229 * 2 * np.pi / 60, rtol=1e-12)
    np.testing.assert_allclose(found.duty, 1.0)
    np.testing.assert_allclose(found.voltage, 12.1)
    np.testing.assert_allclose(found.current[:, 0], 0.00269 * raw["present_current_a"])


def test_a_lost_packet_is_named_by_its_row(tmp_path: Path) -> None:
    raw = registers(present_load_a=np.full(ROWS, -250.0), present_voltage_a=np.full(ROWS, 74.0))
    lines = table(tmp_path / "log.csv", raw).read_text().splitlines()
    cells = lines[50].split(",")
    lines[50] = ",".join([*cells[:2], *[""] * (len(cells) - 2)])
    (tmp_path / "log.csv").write_text("\n".join(lines))
    with refused(RecordingError, "bad-row", "row 51", "log.bad_rows=drop"):
        read(tmp_path / "log.csv")
    assert len(read(tmp_path / "log.csv", bad_rows="drop")) == ROWS - 1


def plain(path: Path, q: np.ndarray, command: np.ndarray) -> Path:
    return table(path, {"time": np.arange(len(q)) / 100, "q": q, "q_des": command})


def test_a_plain_table_and_its_units(tmp_path: Path) -> None:
    t = np.arange(ROWS) / 100
    q, command = np.sin(3 * t - 0.2), np.sin(3 * t)
    found = read(plain(tmp_path / "log.csv", q, command), torque_free=True)
    np.testing.assert_allclose(found.q[:, 0], q, atol=1e-15)
    np.testing.assert_allclose(found.reference[:, 0], command, atol=1e-15)
    for name, factor, word in (("deg", 150.0, "log.unit=deg"), ("percent", 90.0, "log.unit=normalised")):
        with refused(RecordingError, "wrong-unit", "joint", word):
            read(plain(tmp_path / f"{name}.csv", factor * q, factor * command), torque_free=True)
    with refused(RecordingError, "wrong-unit", "log.unit=ticks"):
        read(plain(tmp_path / "ticks.csv", np.round(2048 + 1000 * q), np.round(2048 + 1000 * command)),
             torque_free=True)
    ticks = read(tmp_path / "ticks.csv", torque_free=True, unit="ticks", offset=-2048)
    np.testing.assert_allclose(ticks.q[:, 0], 1000 * TICK * q, atol=TICK)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_command_that_is_the_position_is_refused(tmp_path: Path, shift: int) -> None:
    q = np.sin(np.arange(ROWS) / 30)
    command = np.roll(q, -shift)
    with refused(RecordingError, "command-is-position", "log.csv", "joint"):
        read(plain(tmp_path / "log.csv", q, command), torque_free=True)


def test_a_joint_that_rests_where_it_is_commanded_is_no_fault(tmp_path: Path) -> None:
    """A stiff servo with a coarse encoder: it agrees with a command that does not change."""
    command = np.repeat([0.0, 0.3, 0.1], 100)
    q = np.concatenate([[0.0] * 103, np.linspace(0, 0.3, 20), [0.3] * 80, np.linspace(0.3, 0.1, 20), [0.1] * 77])
    assert len(read(plain(tmp_path / "log.csv", q, command), torque_free=True)) == 300


def test_factors_of_other_signals_only(tmp_path: Path) -> None:
    with refused(RecordingError, "wrong-setting", "position"):
        read(plain(tmp_path / "log.csv", np.arange(9.0), np.zeros(9)), torque_free=True, scale={"position": 2.0})


@pytest.mark.parametrize("key", [b"N" + b"\x85" * 500_000, b")" + b"\x85" * 900_000], ids=["none", "empty"])
def test_nested_tuples_as_a_key_do_not_end_the_process(tmp_path: Path, key: bytes) -> None:
    """Python would compute the hash of such a key by recursion, and end with a segmentation fault."""
    with refused(RecordingError, "bad-recording", "a.pt"):
        read(_archive(tmp_path / "a.pt", b"\x80\x02}" + key + b"K\x01s."))
    with refused(RecordingError, "bad-recording", "key of a table"):
        read(_archive(tmp_path / "a.pt", b"\x80\x02}" + key[:1000] + b"K\x01s."))


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def test_views_of_one_storage_are_counted_each(tmp_path: Path) -> None:
    """60 views of 64 MB of half floats would take 15 GB."""
    size = 32 << 20
    storage = (b"(" + _text("storage") + b"ctorch\nHalfStorage\n" + _text("0") + _text("cpu") + b"J"
               + struct.pack("<i", size) + b"tQ")
    tensor = (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00J" + struct.pack("<i", size)
              + b"\x85K\x01\x85\x89}tR")
    pickled = b"\x80\x02}(" + b"".join(_text(f"q{k}") + tensor for k in range(60)) + b"u."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with refused(RecordingError, "too-large", "unpacks to more than"):
        read(_archive(tmp_path / "a.pt", pickled, bytes(2 * size)))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 500  # MB


def test_tables_in_which_one_table_occurs_often_are_refused(tmp_path: Path) -> None:
    """Eight tables inside each other, each with a hundred times the next one: 10^16 entries in 6 kB."""
    pickled, inner = b"\x80\x02", b"}"
    for level in range(8):
        pickled += inner + b"q" + bytes([level])
        inner = b"}(" + b"".join(_text(f"k{k}") + b"h" + bytes([level]) for k in range(100)) + b"u"
    with refused(RecordingError, "bad-recording", "entries"):
        read(_archive(tmp_path / "a.pt", pickled + inner + b"."))


@pytest.mark.parametrize("pickled", [b"\x80\x02" + b"(t" * 250_000 + b".", b"\x80\x02" + b"(" * 300_000 + b"."])
def test_a_description_of_very_many_instructions_is_refused(tmp_path: Path, pickled: bytes) -> None:
    with refused(RecordingError, "bad-recording", "a.pt"):
        read(_archive(tmp_path / "a.pt", pickled))


def test_names_that_are_nested_are_not_written_out(tmp_path: Path) -> None:
    """The text of forty tuples, each with the one before twice, would have 10^12 characters."""
    nested = b")" + b"".join(b"q" + bytes([k]) + b"h" + bytes([k]) + b"\x86" for k in range(40)) + b"q\x28"
    storage = nested + b"(" + _text("storage") + b"ctorch\nFloatStorage\nh\x28" + _text("cpu") + b"K\x01tQ"
    with refused(RecordingError, "bad-recording", "not a text"):
        read(_archive(tmp_path / "a.pt", b"\x80\x02" + storage + b"."))
