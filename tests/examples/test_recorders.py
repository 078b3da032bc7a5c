"""The recorders of examples/ on a bus that is not there: modules with the functions of the SDKs, servos that follow."""

from __future__ import annotations

import struct
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from example_scripts import FOLDER, example

from dynid.recording.log_reading import read

TICK = 2 * np.pi / 4096
SERVOS = {"shoulder": 1, "elbow": 7}
RATE = 200.0


class Servo:
    """Memory of one servo, little-endian; it moves a third of the way to its goal whenever it is read."""

    def __init__(self, goal: int, position: int, size: int) -> None:
        self.memory = bytearray(256)
        self.goal, self.position, self.size = goal, position, size
        self.write(goal, 2048, size)
        self.write(position, 2100, size)
        self.gain = self.enabled = 0
        self.was_enabled = False

    def write(self, address: int, value: int, size: int) -> None:
        self.memory[address:address + size] = int(value).to_bytes(size, "little", signed=value < 0)

    def value(self, address: int, size: int) -> int:
        return int.from_bytes(self.memory[address:address + size], "little")

    def follow(self) -> None:
        goal, present = self.value(self.goal, self.size), self.value(self.position, self.size)
        self.write(self.position, present + round((goal - present) / 3), self.size)


def sdk(servos: dict[int, Servo], lost: set[int]) -> types.SimpleNamespace:
    """The parts of scservo_sdk and dynamixel_sdk that the recorders use, which are the same."""
    module = types.SimpleNamespace(COMM_SUCCESS=0, COMM_RX_TIMEOUT=-6, closed=[], reads=0)

    class PortHandler:
        def __init__(self, name: str) -> None:
            self.name = name

        def openPort(self) -> bool:
            return True

        def setBaudRate(self, rate: int) -> bool:
            return rate == 1_000_000

        def closePort(self) -> None:
            module.closed.append(self.name)

    class PacketHandler:
        def __init__(self, protocol: float) -> None:
            module.protocol = protocol

        def write1ByteTxRx(self, port: PortHandler, servo: int, address: int, value: int) -> tuple[int, int]:
            servos[servo].write(address, value, 1)
            return 0, 0

        def write2ByteTxRx(self, port: PortHandler, servo: int, address: int, value: int) -> tuple[int, int]:
            servos[servo].write(address, value, 2)
            return 0, 0

        def readTxRx(self, port: PortHandler, servo: int, address: int, length: int) -> tuple[list[int], int, int]:
            module.reads += 1
            if module.reads in lost:
                return [], module.COMM_RX_TIMEOUT, 0
            servos[servo].follow()
            return list(servos[servo].memory[address:address + length]), 0, 0

    class GroupSyncWrite:
        def __init__(self, port: PortHandler, packet: PacketHandler, address: int, length: int) -> None:
            self.address, self.length, self.sent = address, length, {}

        def addParam(self, servo: int, data: list[int]) -> bool:
            assert len(data) == self.length and all(0 <= byte < 256 for byte in data)
            self.sent[servo] = bytes(data)
            return True

        def txPacket(self) -> int:
            for servo, data in self.sent.items():
                servos[servo].memory[self.address:self.address + self.length] = data
            return 0

    module.PortHandler, module.PacketHandler, module.GroupSyncWrite = PortHandler, PacketHandler, GroupSyncWrite
    return module


@pytest.fixture
def motion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A motion file, and a clock that runs without waiting."""
    clock = [0.0]
    monkeypatch.setattr("time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    t = np.arange(120) / RATE
    table = np.column_stack([t, 0.4 * np.sin(3 * t), 0.9 * np.sin(5 * t)])
    np.savetxt(tmp_path / "motion.csv", table, delimiter=",", comments="", header="t,q_shoulder,q_elbow")
    return tmp_path / "motion.csv"


def arguments(motion: Path) -> list[str]:
    return ["/dev/bus", str(motion), str(motion.with_name("log.csv")), *(f"{n}={k}" for n, k in SERVOS.items())]


def feetech() -> dict[int, Servo]:
    servos = {number: Servo(42, 56, 2) for number in SERVOS.values()}
    for servo in servos.values():
        servo.write(58, (1 << 15) + 120, 2)  # -120 ticks/s
        servo.write(60, (1 << 10) + 250, 2)  # -25 % duty cycle
        servo.write(62, 118, 1)
        servo.write(63, 41, 1)
        servo.write(69, (1 << 15) + 20, 2)
    return servos


def check(motion: Path, **values: float) -> None:
    found = read(motion.with_name("log.csv"))
    table = np.loadtxt(motion, delimiter=",", skiprows=1)
    assert found.joints == tuple(SERVOS) and found.is_torque_free and len(found) == len(table)
    np.testing.assert_allclose(found.t, table[:, 0], atol=1e-6)
    np.testing.assert_allclose(found.reference, table[:, 1:], atol=0.51 * TICK)
    assert 0.01 < np.abs(found.reference - found.q).max() < 0.1  # it follows, and later
    for name, value in values.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-12, err_msg=name)


def test_feetech(motion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servos = feetech()
    bus = sdk(servos, set())
    monkeypatch.setitem(sys.modules, "scservo_sdk", bus)
    example("record_feetech").main([*arguments(motion), "--kp", "16"])
    check(motion, dq=-120 * TICK, duty=-0.25, voltage=11.8, temperature=41, current=-0.13)
    assert bus.protocol == 0 and bus.closed == ["/dev/bus"]
    assert all(servo.memory[21] == 16 and servo.memory[40] == 0 for servo in servos.values())  # gain; switched off


def test_a_lost_packet_leaves_its_cells_empty(motion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scservo_sdk", sdk(feetech(), {50, 51}))
    example("record_feetech").main(arguments(motion))
    assert len(read(motion.with_name("log.csv"), bad_rows="drop")) in (118, 119)


def test_servos_are_switched_off_when_the_bus_fails(motion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servos = feetech()
    bus = sdk(servos, set())

    def broken(self: object) -> int:
        raise OSError("the cable is out")
    bus.GroupSyncWrite.txPacket = broken
    monkeypatch.setitem(sys.modules, "scservo_sdk", bus)
    with pytest.raises(OSError, match="cable"):
        example("record_feetech").main(arguments(motion))
    assert bus.closed and all(servo.memory[40] == 0 for servo in servos.values())


def test_dynamixel(motion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servos = {number: Servo(116, 132, 4) for number in SERVOS.values()}
    for servo in servos.values():
        servo.memory[124:132] = struct.pack("<hhi", -177, -50, -33)
        servo.write(144, 121, 2)
        servo.write(146, 38, 1)
    bus = sdk(servos, set())
    monkeypatch.setitem(sys.modules, "dynamixel_sdk", bus)
    example("record_dynamixel").main([*arguments(motion), "--kp", "400"])
    check(motion, dq=-33 * 0.229 * 2 * np.pi / 60, duty=-0.2, voltage=12.1, temperature=38, current=-0.1345)
    assert bus.protocol == 2.0 and bus.closed
    assert all(servo.value(84, 2) == 400 and servo.memory[64] == 0 for servo in servos.values())


def test_lerobot(motion: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goals, present, written = dict.fromkeys(SERVOS, 2048), dict.fromkeys(SERVOS, 2100), {}
    fixed = {"Present_Velocity": -120, "Present_Load": 1024 + 250, "Present_Voltage": 118, "Present_Temperature": 41,
             "Present_Current": -20}
    calls = []

    class FeetechMotorsBus:
        def __init__(self, port: str, motors: dict[str, object]) -> None:
            assert {name: motor.id for name, motor in motors.items()} == SERVOS

        def connect(self) -> None:
            calls.append("connect")

        def enable_torque(self) -> None:
            calls.append("enable")

        def write(self, register: str, motor: str, value: int, *, normalize: bool) -> None:
            written[register, motor] = value

        def sync_write(self, register: str, values: dict[str, int], *, normalize: bool) -> None:
            assert register == "Goal_Position" and not normalize
            goals.update(values)

        def sync_read(self, register: str, *, normalize: bool) -> dict[str, int]:
            if register != "Present_Position":
                return dict.fromkeys(SERVOS, fixed[register])
            for name in SERVOS:
                present[name] += round((goals[name] - present[name]) / 3)
            return dict(present)

        def disconnect(self, *, disable_torque: bool) -> None:
            calls.append(("disconnect", disable_torque))

    class Motor:
        def __init__(self, number: int, model: str, norm_mode: object) -> None:
            self.id, self.model, self.norm_mode = number, model, norm_mode

    motors, tables = types.ModuleType("lerobot.motors"), types.ModuleType("lerobot.motors.feetech")
    motors.Motor, motors.MotorNormMode = Motor, types.SimpleNamespace(DEGREES="degrees")
    tables.FeetechMotorsBus = FeetechMotorsBus
    monkeypatch.setitem(sys.modules, "lerobot", types.ModuleType("lerobot"))
    monkeypatch.setitem(sys.modules, "lerobot.motors", motors)
    monkeypatch.setitem(sys.modules, "lerobot.motors.feetech", tables)
    example("record_lerobot").main([*arguments(motion), "--kp", "16"])
    check(motion, dq=-120 * TICK, duty=-0.25, voltage=11.8, temperature=41, current=-0.13)
    assert calls == ["connect", "enable", ("disconnect", True)]
    assert written == {("P_Coefficient", name): 16 for name in SERVOS}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("record_*.py")), ids=lambda path: path.stem)
def test_a_recorder_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 80
