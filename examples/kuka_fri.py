"""Identify a KUKA LBR iiwa from a log of its Fast Robot Interface, and name the tool's load data.

    python kuka_fri.py kuka-iiwa14 log.csv

The log has a row per FRI cycle with the fields of the FRI state, as `lbr_fri_idl/msg/LBRState` calls them:
time_stamp_sec, time_stamp_nano_sec, measured_joint_position_0 .. 6 (rad), measured_torque_0 .. 6 (N m), and
commanded_joint_position_0 .. 6. Give --torque-sign -1 if dynid reports that torques have the opposite sign.
"""

import argparse

import dynid


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot")
    parser.add_argument("log")
    parser.add_argument("--torque-sign", type=int, choices=(-1, 1), default=1)
    given = parser.parse_args(arguments)
    robot = dynid.Robot.load(given.robot)
    recording = dynid.read(given.log, robot=robot, time=["time_stamp_sec", "time_stamp_nano_sec"],
                           position="measured_joint_position_{i}", torque="measured_torque_{i}",
                           reference="commanded_joint_position_{i}", torque_sign=given.torque_sign)
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb")))
    found = dynid.identify(model, dynid.prepare(recording), method="wls")
    print(f"Torque error {found.diagnostics.relative_error:.2f} %")
    for name, value, std in zip(found.names, found.values, found.std, strict=True):
        print(f"{name:8} {value:10.4f} +- {std:.4f}")
    return found


if __name__ == "__main__":
    main()
