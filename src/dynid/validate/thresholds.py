"""The thresholds of the verdict in one table: name, value, unit, what each decides, and why it has this value.

A threshold decides whether a problem is reported. Sizes, tolerances of algorithms and limits of tables are in the
modules that use them. If no reason is given, the value was chosen with real logs and with simulated machines (seed 3)
of the robots CHOSEN_ON in `reproductions/_faulty_machines.py`; no real machine was reserved for testing. The effect of
half and twice each value is computed by `dynid reproduce verdict-thresholds`. Some thresholds change no verdict of this
study, because the faults of the study are far from them. A "share" is a number between 0 and 1: of root mean squares
for a torque, of squares for a residual.
"""

from __future__ import annotations

# -- another log -----------------------------------------------------------------------------------------
# Excess: increase of the misfit by one set of parameters for both parts, relative to that of one set for each part.
SAME_MACHINE_EXCESS = 0.5  # share: largest excess between two logs that one machine explains
OTHER_MACHINE_EXCESS = 2.0  # share: excess with free friction above which logs are of different machines, and excess
#                             above which a load or a gain changed; logs of one real machine reach 1.1
OTHER_MACHINE_RATIO = 3.0  # times the excess between contiguous parts of one log, which it has to exceed as well
CHANGE_EXPLAINED = 0.9  # share of a change between logs, or of the nominal model's residual, that a load, a gain or
#                         friction has to explain to be named; a load on two logs of one real double pendulum explains
#                         0.86
OVERFIT_RATIO = 2.0  # ratio of the estimate's squared error on the other log to that of a fit to both logs

# -- faults with flexible friction ---------------------------------------------------------------------
EQUALLY_EXPLAINED = 1.1  # ratio of squared residuals below which two explanations are not distinguished
UNRELATED_SHARE = 0.25  # share of a torque's variation that the model does not predict on a typical block in cross-
#                         validation if torques and motion do not belong together

# -- signals -----------------------------------------------------------------------------------------------
NOISE_ACCELERATION = 0.5  # share of position noise in the power of accelerations above which a cut-off is too high

# -- certainty ---------------------------------------------------------------------------------------------
CERTAIN_STANDARD_ERRORS = 4.0  # above which a difference is certain: a wrong scale or direction of gravity, the sign of
#                                a value, a parameter that changes with the cut-off, a delay above one sample
CLEAR_STANDARD_ERRORS = 3.0  # above which a value is clear: the mass of a load, an offset and its excess over friction,
#                              the sign of a value that constraints exclude
FALSE_ALARM = 1e-3  # significance level: a residual is not white, or a known value is wrong
RELEVANT_TORQUE = 0.02  # share of a torque above which an effect is relevant: a pattern (half of it from
#                         CERTAIN_STRENGTH on), a negative value, a delay (filters cause small ones at reversals), the
#                         cost of consistency, an unusual block
RIVAL_WEIGHT = 0.05  # posterior weight above which another cause is named with the best: "One of: ..."
EXCESS_EXPLAINED = 0.5  # share of the excess misfit over each joint's own fit that a cause has to explain
REMAINING_MISFIT = 8.0  # largest misfit after correcting a cause, in multiples of that of each joint's own fit: above
#                         it, another fault may have made the cause look likely (1.5 in simulation, up to 6 on real
#                         machines)
CONTRADICTION_WEIGHT = 1e-3  # posterior weight of one set of parameters for all joints, below which joints contradict
#                              each other
UNEXPLAINED_MISFIT = 2.0  # misfit, in units of the joints' own noise, above which exchanged columns are searched

# -- scales of torques against each other -----------------------------------------------------------------
SCALE_OFF = 0.12  # smallest difference from one of a wrong scale
SCALE_KNOWN = 0.1  # largest standard error of a known scale or drive gain
SCALES_EXPLAIN = 0.6  # share of the inconsistency between joints that the scales have to remove
ABSURD_SCALE = 6.0  # times: largest error of a single drive gain
NOMINAL_DENIES = 1.8  # times: ratio between a scale and that of the nominal model above which they contradict each
#                       other
SMALL_CONTRADICTION = 0.2  # inconsistency between joints, in units of the noise of all rows, below which nothing is
#                            reported

# -- comparison of hypotheses ----------------------------------------------------------------------------
MATERIAL = 0.82  # largest ratio of the misfit with and without the best hypothesis, in the fit and in cross-validation
SECOND_MATERIAL = 0.5  # the same after another cause was found
GAP_EXPLAINED = 0.35  # share of a joint's misfit in cross-validation that backlash has to explain
SCREEN_HOPED = 0.95  # largest misfit ratio on the screening rows for a hypothesis to be refined and compared
CONTRADICTION_ASKED = 1.08  # misfit of all joints together over that of each alone, above which motion and mounting are
#                             tested
ROUGH_JOINT = 0.03  # share of a joint's torque that its own equations do not explain, above which its motion is tested
#                     too
MIXED_JOINT = 0.04  # share of a joint's torque that its own equations do not explain, above which its columns may be
#                     another's
TORQUE_WORTH = 0.007  # share of some joint's torque that the best hypothesis has to explain
GRAVITY_TURNED = 5.0  # degrees: smallest error of the direction of gravity

# -- motion and signals ------------------------------------------------------------------------------------
DEGREES_LIMIT_RATIO = 3.0  # times a joint's limit above which its positions are probably in degrees
LIMIT_SLACK = 0.05  # rad or m beyond a limit that are not reported, because limits in files are rounded
TOO_FAST_RATIO = 1.5  # times the velocity limit above which a speed is reported
SATURATED_SHARE = 0.002  # share of a log's rows at a torque limit above which they are reported
REPEATED_SHARE = 0.4  # share of rows that repeat the previous row; 0.5 if every row occurs twice, 0.235 in a real log
CLOCK_OFF = 0.05  # difference from one of the factor between measured and differentiated velocity, above which the
#                   clock is wrong
CLOCK_CORRELATION = 0.95  # smallest correlation of the two velocities for that factor to count

# -- amount of data ----------------------------------------------------------------------------------------
MIN_EQUATIONS = 5.0  # equations per base parameter, below which a log is too short
MIN_INDEPENDENT = 2.0  # independent equations per base parameter, below which a log is too short
MAX_CONDITION = 200.0  # condition number of the scaled columns; good trajectories reach 20 to 50

# -- residuals: a pattern is reported where all of these hold ------------------------------------------------
PATTERN_SHARE = 0.2  # share of the residual's power that it explains in cross-validation, or
PATTERN_OF_OWN = 0.8  # share of the residual of the joint's own equations
PATTERN_STRENGTH = 12.0  # its F statistic
CERTAIN_STRENGTH = 1000.0  # F statistic of a certain pattern
PATTERN_BLOCKS = 0.7  # share of the blocks in cross-validation that it explains, or that a robust fit predicts better
INDISTINGUISHABLE_RATIO = 0.9  # residual of the best pattern over that of another, above which both are named
SAME_EXPLANATION = 0.97  # the same ratio, above which the simpler pattern is named first
AUTOCORRELATED_SHARE = 0.5  # share of a residual predicted by its past, above which it is autocorrelated
MATERIAL_RESIDUAL = 0.03  # share of a joint's torque above which the structure of its residual is reported
ROBUST_GAIN = 0.01  # share by which a robust fit has to reduce the typical residual for outliers to be reported
LOW_R2 = 0.8  # share of the variance of a torque that the model has to explain
SECOND_FAULT_TORQUE = 0.05  # share of a joint's torque above which a pattern is reported in addition to a cause

# -- values --------------------------------------------------------------------------------------------------
NEGATIVE_STANDARD_ERRORS = 2.0  # standard errors below zero for a value to be negative
VALUE_FALSE_ALARM = 0.01  # probability that noise makes one of all values as negative, or the last link as different
LARGE_OFFSET = 0.6  # share of a joint's torque above which an offset is large
PRICE_RATIO = 1.5  # times the unconstrained error above which physical consistency has a large cost
TERM_GAIN = 0.5  # percent by which a friction term has to reduce a joint's cross-validation error
TERM_GAIN_ERRORS = 2.0  # standard errors over the blocks by which it has to be reduced

# -- cut-off -------------------------------------------------------------------------------------------------
CUTOFF_OF_ERROR = 0.5  # share of the error on unseen data by which predictions have to change at another cut-off, and
CUTOFF_OF_TORQUE = 1.0  # percent of the torques by which they have to change
CUTOFF_KNOWN = 30.0  # percent: largest relative standard error of a parameter whose change is reported
CUTOFF_PERCENT = 20.0  # percent of its value by which a parameter has to change

# -- other logs and blocks of time ---------------------------------------------------------------------------
WORSE_RATIO = 2.0  # times the error on the fitted log above which another log is predicted worse
SLOPE_CHANGE = 0.1  # change of measured over predicted torque above which a joint's torque has another scale
SCALE_LEAVES = 0.5  # largest remaining share of the misfit if another scale is the cause
ODD_BLOCK_RATIO = 3.0  # times the error of the median block above which a block is unusual
NOT_CONSTANT_RATIO = 3.0  # times their standard errors by which parameters vary between blocks

# -- signs and columns ---------------------------------------------------------------------------------------
WRONG_SIGN_SHARE = 0.9  # share of the evidence of a joint's inertias that has to indicate the wrong sign
WRONG_FRICTION_SIGN_SHARE = 0.5  # the same for all values including friction, which cannot add energy
MAX_SIGN_MISFIT = 0.3  # largest share of a joint's torque that its own equations leave if its sign is tested
SWAP_RATIO = 4.0  # mean ratio of squared residuals by which another order explains exchanged torques better
MIXED_COLUMNS_SHARE = 0.08  # share of some joint's torque, unexplained on a typical block, above which two columns may
#                             be exchanged
SWAP_LOG_GAIN = 4.0  # logarithm of squared residuals, over all joints, by which exchanging two columns has to improve

# -- the nominal model ---------------------------------------------------------------------------------------
WRONG_UNIT = 5.0  # smallest factor to the nominal torques for a wrong unit: no drive or file is as wrong
FEW_JOINTS_SHARE = 0.5  # share of the joints that the nominal model explains, below which a larger factor is required
UNIT_SPREAD = 0.3  # largest spread of the logarithms of all joints' factors that one unit explains
MAX_NOMINAL_MISFIT = 0.3  # share of a squared torque not explained by the scaled nominal model, above which it is not
#                           used
NOMINAL_EXPLAINS = 0.8  # share of a torque that nominal gravity and accelerations have to explain to be used
NOMINAL_GRAVITY = 0.1  # share of a torque that gravity alone has to explain for that
LOAD_TORQUE = 0.3  # smallest share of a load in some torque: robot files are wrong by tens of percent
FILE_ERROR = 0.15  # relative error of the links in a robot file, per observed direction: about 30 % of a whole link
CARRIED_GRAVITY = 0.2  # smallest share of nominal gravity in a joint's torque for its absence to be noticed
MAX_GRAVITY_LEFT = 0.2  # largest share of nominal gravity in a torque from which gravity was removed
MAX_GRAVITY_PART = 0.1  # largest share of such a torque that follows gravity; torques in another unit follow it more

# -- noise and delay of hypotheses ---------------------------------------------------------------------------
NOISE_FLOOR = 0.005  # share of a joint's torque: smallest assumed noise
GRAVITY_MISFIT_RATIO = 1.25  # times the smallest misfit up to which a direction of gravity may be right
COMMAND_PERIODS = 2.0  # sample periods by which a commanded torque precedes its logged motion
SHORT_DELAY_WORTH = 2.0  # times as much torque that a delay up to COMMAND_PERIODS has to explain
