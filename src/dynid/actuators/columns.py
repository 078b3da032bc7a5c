"""Column indices of the array (joints, JOINT_COLUMNS) of joint parameters that the compiled simulation reads."""

from __future__ import annotations

# Mechanics: armature, kg m^2; friction (see `parameters`); encoder bias, rad; backlash, rad; constant torque, N m.
(ARMATURE, VISCOUS, COULOMB, STRIBECK, STRIBECK_SPEED, STRIBECK_SHAPE, LOAD_MOTOR, LOAD_EXTERNAL, STRIBECK_LOAD_MOTOR,
 STRIBECK_LOAD_EXTERNAL, QUADRATIC_MOTOR, QUADRATIC_EXTERNAL, BIAS, BACKLASH, OFFSET) = range(15)
# Drive law: u = KP e + KI z + KD (FOLLOW dq_des - dq) + FEED feed, dz/dt = INTEGRAL_ERROR e - INTEGRAL_SPEED dq, u is
# clipped to +-U_LIMIT (then z is constant, unless WINDUP is 1); torque = TORQUE_GAIN supply u - BACK_EMF dq, clipped to
# +-TORQUE_LIMIT; commands arrive DELAY seconds late.
(KP, KI, KD, FOLLOW, INTEGRAL_ERROR, INTEGRAL_SPEED, FEED, U_LIMIT, TORQUE_GAIN, BACK_EMF, TORQUE_LIMIT,
 DELAY, WINDUP) = range(15, 28)
# Encoder: the drive measures ENCODER_ORIGIN plus whole multiples of ENCODER_COUNT, rad; 0: not rounded.
(ENCODER_COUNT, ENCODER_ORIGIN) = range(28, 30)
JOINT_COLUMNS = 30
