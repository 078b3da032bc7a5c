"""The ten inertial parameters of a body and conversions to other representations.

Order: ``XX XY XZ YY YZ ZZ MX MY MZ M``. XX..ZZ are the entries of the inertia matrix about the origin of the link
frame, MX..MZ the first moments (mass times centre of mass), M the mass. Units: kg m^2, kg m, kg.

Each function takes arrays whose last axis has ten entries, with any leading axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.robot.pose import quaternion

NAMES = ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)

# Rows and columns of the six entries XX XY XZ YY YZ ZZ of a symmetric matrix.
_ROW = np.array([0, 0, 0, 1, 1, 2])
_COLUMN = np.array([0, 1, 2, 1, 2, 2])
_SINGULAR_MOMENT = 1e-12  # share of the largest principal moment: a smaller moment is a rounding error
EIGENVALUE_TOLERANCE = 1e-9  # share of the largest eigenvalue below which a negative one is a rounding error
# Pinocchio's toDynamicParameters: M MX MY MZ XX XY YY XZ YZ ZZ, as indices of dynid's order.
_PINOCCHIO = np.array([9, 6, 7, 8, 0, 1, 3, 2, 4, 5])


def _ten(parameters: ArrayLike) -> Array:
    ten = np.asarray(parameters, dtype=float)
    if ten.ndim == 0 or ten.shape[-1] != 10:
        raise ModelError(f"a body has ten inertial numbers ({' '.join(NAMES)}), got shape {ten.shape}",
                         code="bad-inertias")
    return ten


def skew(v: ArrayLike) -> Array:
    """Return the matrix of the cross product: ``skew(v) @ w == cross(v, w)``. (..., 3) to (..., 3, 3)."""
    v = np.asarray(v, dtype=float)
    s = np.zeros((*v.shape[:-1], 3, 3))
    s[..., 0, 1], s[..., 0, 2], s[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    s[..., 1, 0], s[..., 2, 0], s[..., 2, 1] = v[..., 2], -v[..., 1], v[..., 0]
    return s


def symmetric(six: ArrayLike) -> Array:
    """Return the symmetric matrix (..., 3, 3) with entries XX XY XZ YY YZ ZZ (..., 6)."""
    six = np.asarray(six, dtype=float)
    matrix = np.empty((*six.shape[:-1], 3, 3))
    matrix[..., _ROW, _COLUMN] = six
    matrix[..., _COLUMN, _ROW] = six
    return matrix


def entries(matrix: ArrayLike) -> Array:
    """Return the six entries XX XY XZ YY YZ ZZ (..., 6) of a symmetric matrix (..., 3, 3)."""
    return np.asarray(matrix, dtype=float)[..., _ROW, _COLUMN]


def from_central(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Return ten inertial parameters from mass (kg), centre of mass (m) and inertia about it (3 x 3, kg m^2).

    By Steiner's theorem, I_origin = I_com + m (|c|^2 1 - c c').
    """
    mass, com = np.asarray(mass, dtype=float), np.asarray(com, dtype=float)
    inertia = np.asarray(inertia, dtype=float)
    c = skew(com)
    about_origin = inertia + mass[..., None, None] * (c @ np.swapaxes(c, -1, -2))
    return np.concatenate([entries(about_origin), mass[..., None] * com, mass[..., None]], axis=-1)


def to_central(parameters: ArrayLike) -> tuple[Array, Array, Array]:
    """Return mass (...), centre of mass (..., 3) and inertia about it (..., 3, 3); inverse of `from_central`.

    A massless body has its centre of mass at the origin.
    """
    ten = _ten(parameters)
    mass = ten[..., 9]
    if np.any((mass == 0) & np.any(ten[..., 6:9] != 0, axis=-1)):
        raise ModelError("a body with first moments but no mass has no centre of mass", code="no-mass")
    com = ten[..., 6:9] / np.where(mass == 0, 1.0, mass)[..., None]
    c = skew(com)
    return mass, com, symmetric(ten[..., :6]) - mass[..., None, None] * (c @ np.swapaxes(c, -1, -2))


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """Return the 4 x 4 pseudo-inertia [[Sigma, h], [h', m]] with Sigma = tr(I)/2 1 - I.

    It is positive definite exactly if some mass distribution of positive density has these ten parameters (Ardiani, eq.
    1.47): mass, inertia and triangle inequality in one condition.
    """
    ten = _ten(parameters)
    inertia = symmetric(ten[..., :6])
    half_trace = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)
    pseudo = np.empty((*ten.shape[:-1], 4, 4))
    pseudo[..., :3, :3] = half_trace[..., None, None] * np.eye(3) - inertia
    pseudo[..., :3, 3] = pseudo[..., 3, :3] = ten[..., 6:9]
    pseudo[..., 3, 3] = ten[..., 9]
    return pseudo


def from_pseudo_inertia(pseudo: ArrayLike) -> Array:
    """Return ten parameters from the 4 x 4 pseudo-inertia: I = tr(Sigma) 1 - Sigma."""
    pseudo = np.asarray(pseudo, dtype=float)
    sigma = pseudo[..., :3, :3]
    trace = np.trace(sigma, axis1=-2, axis2=-1)
    inertia = trace[..., None, None] * np.eye(3) - sigma
    return np.concatenate([entries(inertia), pseudo[..., :3, 3], pseudo[..., 3, 3, None]], axis=-1)


def spatial_inertia(parameters: ArrayLike) -> Array:
    """Return the 6 x 6 matrix [[I, S(h)], [S(h)', m 1]] (Sousa, eq. 3.19), angular part first."""
    ten = _ten(parameters)
    matrix = np.zeros((*ten.shape[:-1], 6, 6))
    matrix[..., :3, :3] = symmetric(ten[..., :6])
    matrix[..., :3, 3:] = skew(ten[..., 6:9])
    matrix[..., 3:, :3] = -matrix[..., :3, 3:]
    matrix[..., 3:, 3:] = ten[..., 9, None, None] * np.eye(3)
    return matrix


def to_pinocchio(parameters: ArrayLike) -> Array:
    """Return the parameters in Pinocchio's order: M MX MY MZ XX XY YY XZ YZ ZZ."""
    return _ten(parameters)[..., _PINOCCHIO]


def from_pinocchio(parameters: ArrayLike) -> Array:
    """Return the ten inertial parameters in dynid's order from those in Pinocchio's order."""
    ten = _ten(parameters)
    ours = np.empty_like(ten)
    ours[..., _PINOCCHIO] = ten
    return ours


def to_mujoco(parameters: ArrayLike) -> tuple[Array, Array, Array]:
    """Return mass (...), centre of mass (..., 3) and inertia about it (..., 6), XX YY ZZ XY XZ YZ as in MuJoCo."""
    mass, com, inertia = to_central(parameters)
    return mass, com, entries(inertia)[..., [0, 3, 5, 1, 2, 4]]


def to_mujoco_attributes(parameters: ArrayLike) -> dict[str, Array]:
    """Return the attributes of MuJoCo's <inertial> element from the ten parameters (10,) of a link.

    The inertia is written as principal moments with their axes. MuJoCo computes these from `fullinertia` itself, and
    version 3.11 does so with torque errors of up to 4e-7 N m. A link that is not physically consistent, which MuJoCo
    refuses, keeps `fullinertia`.
    """
    mass, com, full = to_mujoco(parameters)
    attributes = {"pos": com, "mass": mass}
    if not np.any(full[3:]):
        return {**attributes, "diaginertia": full[:3]}
    moments, axes = np.linalg.eigh(symmetric(full[[0, 3, 4, 1, 5, 2]]))
    if moments[0] <= 0.0:
        return {**attributes, "fullinertia": full}
    return {**attributes, "quat": quaternion(axes * np.sign(np.linalg.det(axes))), "diaginertia": moments}


def to_log_cholesky(parameters: ArrayLike) -> Array:
    """Return the log-Cholesky coordinates (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) of a body (..., 10).

    The pseudo-inertia is U U' with U = exp(alpha) [[e^d1 s12 s13 t1], [0 e^d2 s23 t2], [0 0 e^d3 t3], [0 0 0 1]]
    (Rucker and Wensing 2022): any ten real coordinates describe a physically consistent body.
    """
    pseudo = pseudo_inertia(parameters)
    try:
        # The upper factor is the lower factor of the matrix with its rows and columns in reverse order.
        upper = np.linalg.cholesky(pseudo[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError:
        raise ModelError("log-Cholesky coordinates exist only for physically consistent bodies: this "
                         "pseudo-inertia is not positive definite", code="not-consistent") from None
    last = upper[..., 3, 3]
    u = upper / last[..., None, None]
    return np.stack([np.log(last), np.log(u[..., 0, 0]), np.log(u[..., 1, 1]), np.log(u[..., 2, 2]),
                     u[..., 0, 1], u[..., 1, 2], u[..., 0, 2],
                     u[..., 0, 3], u[..., 1, 3], u[..., 2, 3]], axis=-1)


def change_frame(pose: ArrayLike) -> Array:
    """Return the matrix (10, 10) that converts the inertial parameters of a body from frame B to frame A.

    pose (4, 4): pose of frame B in frame A.

    For the pseudo-inertia a change of frame is P_A = T P_B T'.
    """
    pose = np.asarray(pose, dtype=float)
    basis = pseudo_inertia(np.eye(10))
    return from_pseudo_inertia(pose @ basis @ pose.T).T


@dataclass(frozen=True)
class InertiaProblem:
    """A fault of the inertia of one link; `violation`: size of the fault, kg, kg m^2 or m; 0 for a missing inertia.

    The kind "size" is a mass (kg), radius of gyration or distance of the centre of mass (m) that does not fit the size
    of the robot.
    """

    link: str
    kind: Literal["missing", "mass", "not-positive-definite", "triangle", "centre-of-mass", "size"]
    message: str
    violation: float


def can_exist(parameters: ArrayLike) -> bool:
    """Return whether the ten parameters of a body are physically consistent up to rounding.

    Their pseudo-inertia must have no negative eigenvalue (Ardiani, eq. 1.47). Point masses and flat plates are
    consistent too.
    """
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(parameters))
    return bool(eigenvalues[0] >= -EIGENVALUE_TOLERANCE * max(float(np.abs(eigenvalues).max()), 1e-300))


def body_faults(link: str, parameters: ArrayLike, rounding: float = 0.0) -> Iterator[InertiaProblem]:
    """Yield the faults of the ten inertial parameters of a link: in mass, inertia, or triangle inequality.

    rounding: tolerance of the triangle inequality, relative to the largest principal moment.
    """
    ten = _ten(parameters)
    mass = float(ten[9])
    if mass <= 0:
        what = "no mass" if mass == 0 else f"the negative mass {mass:.6g} kg"
        yield InertiaProblem(link, "mass", f"link '{link}' has {what}", 0.0 - mass)
    if mass == 0:
        if np.any(ten[:9] != 0):
            yield InertiaProblem(link, "not-positive-definite", f"link '{link}' has moments or inertia but no mass",
                                 float(np.abs(ten[:9]).max()))
        return
    # A body with a negative mass has no centre of mass, so its inertia about the origin of the frame is tested.
    central, where = (to_central(ten)[2], "about its centre of mass") if mass > 0 else (
        symmetric(ten[:6]), "about its frame")
    small, middle, large = (float(m) for m in np.linalg.eigvalsh(central))
    moments = f"principal moments {small:.4g}, {middle:.4g}, {large:.4g} kg m^2"
    scale, excess = max(abs(small), abs(large)), large - middle - small
    if small <= _SINGULAR_MOMENT * scale:
        yield InertiaProblem(link, "not-positive-definite",
                             f"the inertia of link '{link}' {where} is not positive definite: {moments}",
                             max(-small, 0.0))
    if excess > rounding * scale:
        yield InertiaProblem(link, "triangle", f"link '{link}' violates the triangle inequality by {excess:.4g} kg "
                             f"m^2: {moments}", excess)
