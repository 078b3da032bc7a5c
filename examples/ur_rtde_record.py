"""Execute a motion on a Universal Robots arm by RTDE and record it, as a CSV file that dynid reads.

    pip install ur_rtde
    dynid excite ur10 -o motion.csv --rate 125
    python ur_rtde_record.py 192.168.1.10 motion.csv log.csv
    dynid identify ur10 log.csv --set log.preset=ur-rtde --set log.drive_gain=from-log -o out

The columns have the names of RTDE's output variables. Currents become torques by drive gains, which dynid estimates
from the controller's target torques and currents. Hold the emergency stop: only joint limits of the file are checked.
"""

import argparse
import csv

from rtde_control import RTDEControlInterface
from rtde_receive import RTDEReceiveInterface

APPROACH = (0.3, 0.3)  # rad/s and rad/s^2 on the way to the first posture
LOOK_AHEAD, GAIN = 0.1, 300  # s and 1: of servoJ, smooth enough for a filtered motion
SIGNALS = {"actual_q": "getActualQ", "actual_qd": "getActualQd", "actual_current": "getActualCurrent",
           "target_q": "getTargetQ", "target_qd": "getTargetQd", "target_moment": "getTargetMoment",
           "target_current": "getTargetCurrent"}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("address", "motion", "log"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    with open(given.motion, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    positions = [[float(value) for name, value in row.items() if name.startswith("q_")] for row in rows]
    period = (float(rows[-1]["t"]) - float(rows[0]["t"])) / (len(rows) - 1)
    receive = RTDEReceiveInterface(given.address)
    control = RTDEControlInterface(given.address)
    try:
        control.moveJ(positions[0], *APPROACH)
        with open(given.log, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["timestamp", *(f"{signal}_{j}" for signal in SIGNALS for j in range(6))])
            for goal in positions:
                began = control.initPeriod()
                control.servoJ(goal, 0.0, 0.0, period, LOOK_AHEAD, GAIN)
                table.writerow([receive.getTimestamp(), *(value for read in SIGNALS.values()
                                                          for value in getattr(receive, read)())])
                control.waitPeriod(began)
        control.servoStop()
    finally:
        control.stopScript()


if __name__ == "__main__":
    main()
