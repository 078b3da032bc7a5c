"""Play a motion on the servos of a LeRobot arm and record what they do, as a CSV file that dynid reads.

    python record_lerobot.py /dev/ttyACM0 motion.csv log.csv shoulder_pan=1 shoulder_lift=2 --model sts3215 --kp 16

LeRobot's own recorder stores positions and actions at 30 Hz; this one also stores load, voltage, temperature and
current, as fast as the bus allows. The motion has the columns t (s) and q_NAME (rad, zero at tick 2048), as
`dynid excite` writes them. The log holds registers: ticks, ticks/s, 0.1 % duty cycle, 0.1 V, degrees Celsius, 6.5 mA.
"""

import argparse
import csv
import math
import time

from lerobot.motors import Motor, MotorNormMode
from lerobot.motors.feetech import FeetechMotorsBus

SIGNALS = {"position": "Present_Position", "velocity": "Present_Velocity", "load": "Present_Load",
           "voltage": "Present_Voltage", "temperature": "Present_Temperature", "current": "Present_Current"}
SIGN_BIT_OF_LOAD = 1 << 10  # older versions of LeRobot leave it undecoded


def read_all(bus, names):
    """The signals of all servos, joint by joint; empty cells where a packet was lost."""
    columns = {}
    for signal, register in SIGNALS.items():
        try:
            columns[signal] = bus.sync_read(register, normalize=False)
        except ConnectionError:
            columns[signal] = dict.fromkeys(names, "")
    for name, load in columns["load"].items():
        if load != "" and load >= SIGN_BIT_OF_LOAD:
            columns["load"][name] = SIGN_BIT_OF_LOAD - load
    return [columns[signal][name] for name in names for signal in SIGNALS]


def send(bus, names, angles):
    """Command the positions of all servos, rad; return the commands in ticks."""
    goals = [min(max(round(2048 + angle * 4096 / math.tau), 0), 4095) for angle in angles]
    bus.sync_write("Goal_Position", dict(zip(names, goals, strict=True)), normalize=False)
    return goals


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("port", None), ("motion", None), ("log", None), ("servos", "+")):
        parser.add_argument(name, nargs=count)
    parser.add_argument("--model", default="sts3215")
    parser.add_argument("--kp", type=int, default=16, help="proportional gain of the servos")
    given = parser.parse_args(arguments)
    names, ids = [one.split("=")[0] for one in given.servos], [int(one.split("=")[1]) for one in given.servos]
    with open(given.motion, newline="") as file:
        motion = [(float(row["t"]), [float(row[f"q_{name}"]) for name in names]) for row in csv.DictReader(file)]
    bus = FeetechMotorsBus(given.port, {name: Motor(number, given.model, MotorNormMode.DEGREES)
                                        for name, number in zip(names, ids, strict=True)})
    bus.connect()
    try:
        for name in names:
            bus.write("P_Coefficient", name, given.kp, normalize=False)
        bus.enable_torque()
        present = bus.sync_read("Present_Position", normalize=False)
        start = [(present[name] - 2048) * math.tau / 4096 for name in names]
        for step in range(101):  # two seconds from where the servos are to where the motion begins
            send(bus, names, [a + step / 100 * (b - a) for a, b in zip(start, motion[0][1], strict=True)])
            time.sleep(0.02)
        with open(given.log, "w", newline="") as file:
            table = csv.writer(file)
            measured = [f"present_{signal}_{name}" for name in names for signal in SIGNALS]
            table.writerow(["time", *(f"goal_position_{name}" for name in names), *measured])
            begin = time.perf_counter()
            for moment, angles in motion:
                time.sleep(max(0.0, moment - motion[0][0] - (time.perf_counter() - begin)))
                stamp, goals = time.perf_counter() - begin, send(bus, names, angles)
                table.writerow([f"{stamp:.6f}", *goals, *read_all(bus, names)])
    finally:
        bus.disconnect(disable_torque=True)


if __name__ == "__main__":
    main()
