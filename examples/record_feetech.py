"""Play a motion on Feetech STS or SMS servos and record what they do, as a CSV file that dynid reads.

    python record_feetech.py /dev/ttyUSB0 motion.csv log.csv shoulder=1 elbow=2 --kp 16

The motion has the columns t (s) and q_NAME (rad, zero at tick 2048), as `dynid excite` writes them. The log holds the
registers: ticks, ticks/s, 0.1 % duty, 0.1 V, degrees Celsius, 6.5 mA; empty cells where a packet was lost.
"""

import argparse
import csv
import math
import time

import scservo_sdk as sdk

TORQUE_ENABLE, P_COEFFICIENT, GOAL_POSITION, PRESENT_POSITION = 40, 21, 42, 56  # addresses of the control table
BLOCK_LENGTH = 15  # bytes from the present position to the present current
SIGNALS = ("position", "velocity", "load", "voltage", "temperature", "current")


def signed(data, place, bit):
    """A register of two bytes whose sign is one of its bits."""
    return value if (value := data[place] + 256 * data[place + 1]) < 1 << bit else (1 << bit) - value


def read_servo(packet, port, servo):
    """The signals of one servo, read in one packet; empty cells where it was lost."""
    data, result, _ = packet.readTxRx(port, servo, PRESENT_POSITION, BLOCK_LENGTH)
    if result != sdk.COMM_SUCCESS or len(data) < BLOCK_LENGTH:
        return [""] * len(SIGNALS)
    return [signed(data, 0, 15), signed(data, 2, 15), signed(data, 4, 10), data[6], data[7], signed(data, 13, 15)]


def send(packet, port, servos, angles):
    """Command the positions of all servos, rad, in one packet; return the commands in ticks."""
    group = sdk.GroupSyncWrite(port, packet, GOAL_POSITION, 2)
    goals = [min(max(round(2048 + angle * 4096 / math.tau), 0), 4095) for angle in angles]
    for servo, goal in zip(servos, goals, strict=True):
        group.addParam(servo, [goal & 0xFF, goal >> 8])
    group.txPacket()
    return goals


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("port", None), ("motion", None), ("log", None), ("servos", "+")):
        parser.add_argument(name, nargs=count)
    parser.add_argument("--kp", type=int, default=32, help="proportional gain of the servos")
    given = parser.parse_args(arguments)
    names, servos = [one.split("=")[0] for one in given.servos], [int(one.split("=")[1]) for one in given.servos]
    with open(given.motion, newline="") as file:
        motion = [(float(row["t"]), [float(row[f"q_{name}"]) for name in names]) for row in csv.DictReader(file)]
    port, packet = sdk.PortHandler(given.port), sdk.PacketHandler(0)
    if not (port.openPort() and port.setBaudRate(1_000_000)):
        raise SystemExit(f"{given.port} cannot be opened")
    try:
        for servo in servos:
            packet.write1ByteTxRx(port, servo, P_COEFFICIENT, given.kp)
            packet.write1ByteTxRx(port, servo, TORQUE_ENABLE, 1)
        start = [(float(read_servo(packet, port, servo)[0]) - 2048) * math.tau / 4096 for servo in servos]
        for step in range(101):  # two seconds from where the servos are to where the motion begins
            send(packet, port, servos, [a + step / 100 * (b - a) for a, b in zip(start, motion[0][1], strict=True)])
            time.sleep(0.02)
        with open(given.log, "w", newline="") as file:
            table, begin = csv.writer(file), time.perf_counter()
            measured = [f"present_{signal}_{name}" for name in names for signal in SIGNALS]
            table.writerow(["time", *(f"goal_position_{name}" for name in names), *measured])
            for moment, angles in motion:
                time.sleep(max(0.0, moment - motion[0][0] - (time.perf_counter() - begin)))
                stamp, goals = time.perf_counter() - begin, send(packet, port, servos, angles)
                cells = [cell for servo in servos for cell in read_servo(packet, port, servo)]
                table.writerow([f"{stamp:.6f}", *goals, *cells])
    finally:
        for servo in servos:
            packet.write1ByteTxRx(port, servo, TORQUE_ENABLE, 0)
        port.closePort()


if __name__ == "__main__":
    main()
