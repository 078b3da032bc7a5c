"""Identify the servos of an SO-101 from a LeRobot dataset: armature, friction and delay, without torques.

    python so101_lerobot.py so101.urdf my_dataset --kp 16

The dataset is a folder with meta/info.json whose joints are in degrees (`use_degrees`). Motions that `dynid excite
--actuator voltage` designs, recorded by record_lerobot.py beside this script, determine more than teleoperation does.
"""

import argparse

import dynid
from dynid.actuators import ActuatorLog, identify_actuators
from dynid.recording.lerobot import dataset_episodes

STS3215 = {"gain": 0.166, "limit": 0.97, "vin": 7.4, "resistance": 2.68}  # 1/rad, share, V, Ohm: of a 7.4 V servo


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot")
    parser.add_argument("dataset")
    parser.add_argument("--kp", type=float, default=16.0, help="proportional gain that the servos had")
    given = parser.parse_args(arguments)
    robot = dynid.Robot.load(given.robot)
    episodes, _ = dataset_episodes(given.dataset)
    logs = [ActuatorLog(dynid.read(given.dataset, robot=robot, episode=number, unit="deg"), {"kp": given.kp})
            for number in episodes]
    found = identify_actuators(robot, logs, law="voltage", friction="m1", gains=STS3215)
    print(f"Simulated positions have a mean error of {1e3 * found.mean_error:.2f} mrad.")
    for row in found.rows():
        print(*row, sep="  ")
    return found


if __name__ == "__main__":
    main()
