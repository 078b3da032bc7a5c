"""Identify a Franka arm from a log of libfranka, and write the model for MuJoCo.

    python panda_libfranka.py franka-panda log.csv panda.xml

The log is what `franka::logToCSV` writes from the states of a `franka::ControlException` or of your own callback; its
length is the argument `log_size` of `franka::Robot` (50 ms by default). Design the motion with `dynid excite
franka-panda -o motion.csv --rate 1000`. The robot is a built-in one or your URDF.
"""

import argparse

import dynid


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("robot", "log", "output"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    robot = dynid.Robot.load(given.robot)
    recording = dynid.read(given.log, robot=robot, preset="libfranka")
    # The torque sensors are behind the gears, so little friction is left in what they measure.
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb")))
    found = dynid.identify(model, dynid.prepare(recording), method="pc-wls")
    print(f"Torque error {found.diagnostics.relative_error:.2f} %; {found.well_determined.sum()} of {len(found.names)} "
          "base parameters are well determined.")
    found.to_mjcf(given.output)
    return found


if __name__ == "__main__":
    main()
