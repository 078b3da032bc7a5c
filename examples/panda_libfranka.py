"""Identify a Franka arm from a log of libfranka, and write what controllers and simulators need.

    python panda_libfranka.py panda.urdf log.csv out

The log is what `franka::logToCSV` writes. Construct the robot with a large log (`franka::Robot robot(ip,
franka::RealtimeConfig::kEnforce, 60000)` for a minute) and write the log of the `ControlException` or of your own
callback. A motion to execute comes from `dynid excite panda.urdf -o motion.csv --rate 1000`.
"""

import argparse
from pathlib import Path

import dynid


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("robot", "log", "output"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    robot = dynid.Robot.load(given.robot)
    recording = dynid.read(given.log, robot=robot, preset="libfranka")
    # Torque sensors of the arm are on the link side, so gear friction is small; what is left of it is identified.
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous", "coulomb", "offset")))
    samples = dynid.prepare(recording)
    found = dynid.identify(model, samples, method="pc-wls")
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    found.save(folder / "estimate.npz")
    print(f"torque error {found.diagnostics.relative_error:.2f} %, {int(found.well_determined.sum())} of "
          f"{len(found.names)} base parameters are well determined")
    return found


if __name__ == "__main__":
    main()
