"""A plain identification script: numpy, scipy and Pinocchio, without dynid. `dynid bench run` compares with it.

    python _plain_script.py robot.urdf log.npz
"""

import sys

import numpy as np
import pinocchio as pin
from scipy.linalg import qr
from scipy.signal import butter, filtfilt

CUTOFF = 8.0  # Hz, of the low-pass filter
DEAD_SPEED = 0.01  # rad/s, below which the sign of a velocity is noise
EDGE = 50  # samples left out at both ends, where the filter has its transients

robot = pin.buildModelFromUrdf(sys.argv[1])
data = robot.createData()
dof = robot.nv

# Read the log, filter without phase lag, differentiate.
log = np.load(sys.argv[2])
time, position, torque = log["times"], log["positions"], log["torques"]
rate = (len(time) - 1) / (time[-1] - time[0])
numerator, denominator = butter(4, CUTOFF / (rate / 2))
q = filtfilt(numerator, denominator, position, axis=0)
v = np.gradient(q, 1 / rate, axis=0)
a = np.gradient(v, 1 / rate, axis=0)
tau = filtfilt(numerator, denominator, torque, axis=0)
q, v, a, tau = (x[EDGE:-EDGE] for x in (q, v, a, tau))

# Stack the regressor: ten columns a link, then viscous friction, Coulomb friction and an offset of every joint.
rows = np.zeros((len(q), dof, 13 * dof))
for k in range(len(q)):
    rows[k, :, :10 * dof] = pin.computeJointTorqueRegressor(robot, data, q[k], v[k], a[k])
joint = np.arange(dof)
rows[:, joint, 10 * dof + joint] = v
rows[:, joint, 11 * dof + joint] = np.where(np.abs(v) > DEAD_SPEED, np.sign(v), 0.0)
rows[:, joint, 12 * dof + joint] = 1.0
regressor, measured = rows.reshape(-1, 13 * dof), tau.ravel()

# Base parameters: the columns that a pivoted QR decomposition calls independent.
scale = np.linalg.norm(regressor, axis=0)
scale[scale == 0.0] = 1.0
triangle, order = qr(regressor / scale, mode="r", pivoting=True)
diagonal = np.abs(np.diag(triangle))
independent = np.sort(order[:int(np.sum(diagonal > 1e-8 * diagonal[0]))])

# Least squares on these columns, with standard errors.
orthogonal, triangle = np.linalg.qr(regressor[:, independent])
values = np.linalg.solve(triangle, orthogonal.T @ measured)
residual = measured - regressor[:, independent] @ values
variance = residual @ residual / (len(measured) - len(values))
errors = np.sqrt(variance * np.sum(np.linalg.inv(triangle) ** 2, axis=1))

symbols = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
link = [f"{name}{j + 1}" for j in range(dof) for name in symbols]
names = link + [f"{name}{j + 1}" for name in ("Fv", "Fc", "Fo") for j in range(dof)]
for column, value, error in zip(independent, values, errors, strict=True):
    print(f"{names[column]:>5} {value:12.6f} +- {error:.6f}")
print(f"relative error {100 * np.linalg.norm(residual) / np.linalg.norm(measured):.2f} %")
