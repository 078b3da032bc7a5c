"""The thresholds of the verdict in one table: name, value, unit, what each decides, and why it has this value.

A threshold decides whether something is reported. Sizes, tolerances of algorithms and limits of tables are in the
modules that use them. If no reason is given, the value was chosen on simulated machines with seed 3 of the robots that
`reproductions/_faulty_machines.py` lists as chosen on, and with the real logs at hand; no real machine was reserved for
testing them. `dynid reproduce verdict-thresholds` computes the effect of half and twice each value. Some change no
verdict there: their faults are far from them, but a finding needs a border. A "share" is a number between 0 and 1: of
root mean squares for a torque, of squares for a residual.
"""

from __future__ import annotations

# -- another log -----------------------------------------------------------------------------------------
# Excess: share of the misfit of one set of parameters for each part that one set for both parts leaves above it.
SAME_MACHINE_EXCESS = 0.5  # share: excess between two logs up to which one machine explains both
OTHER_MACHINE_EXCESS = 2.0  # share: excess, friction free, from which the logs are of different machines, and excess
#                             from which a load or a gain changed; logs of one real machine reach 1.1
OTHER_MACHINE_RATIO = 3.0  # times the excess between contiguous parts of one log that it has to exceed besides
CHANGE_EXPLAINED = 0.9  # share of a change between logs, or of the residual of the nominal model, that a load, a gain
#                         or friction has to explain to be named; a load on two logs of one real double pendulum
#                         explains 0.86
OVERFIT_RATIO = 2.0  # times, in squares, that the estimate's error on the other log is above that of both logs' fit

# -- faults beside flexible friction ---------------------------------------------------------------------
EQUALLY_EXPLAINED = 1.1  # times what is left, in squares: two explanations nearer than that are not distinguished
UNRELATED_SHARE = 0.25  # share of a torque's variation that the model leaves on a typical block left out where torques
#                         and motion do not belong together

# -- signals -----------------------------------------------------------------------------------------------
NOISE_ACCELERATION = 0.5  # share of the power of accelerations that is noise of the positions where a cut-off is too
#                           high

# -- certainty ---------------------------------------------------------------------------------------------
CERTAIN_STANDARD_ERRORS = 4.0  # from which a difference is certain: a scale or a gravity that is off, the sign of a
#                                value, a parameter that changes with the cut-off, a delay above one sample
CLEAR_STANDARD_ERRORS = 3.0  # from which a value is clear: the mass of a load, an offset and what it is above friction,
#                              the sign of a value that constraints exclude
FALSE_ALARM = 1e-3  # probability of a test, below which a residual is not white or a known value is wrong
RELEVANT_TORQUE = 0.02  # share of a torque from which it matters: a pattern (half of that from CERTAIN_STRENGTH on), a
#                         negative value, a delay (a filter leaves small ones at reversals), the price of consistency,
#                         an unusual block
RIVAL_WEIGHT = 0.05  # posterior weight from which another cause is named beside the best: "One of: ..."
EXCESS_EXPLAINED = 0.5  # share of the misfit above that of each joint's own fit that a cause has to explain
REMAINING_MISFIT = 8.0  # times the misfit of each joint's own fit that a cause may leave: where more is left, something
#                         else is wrong that may have made it look likely (1.5 in simulation, up to 6 on real machines)
CONTRADICTION_WEIGHT = 1e-3  # posterior weight of one set of parameters for all joints, below which joints contradict
#                              each other
UNEXPLAINED_MISFIT = 2.0  # misfit, in units of the joints' own noise, from which exchanged columns are looked for

# -- scales of torques against each other -----------------------------------------------------------------
SCALE_OFF = 0.12  # from one: a scale nearer than that is not wrong
SCALE_KNOWN = 0.1  # standard error of a scale or a drive gain up to which it counts as known
SCALES_EXPLAIN = 0.6  # share of the misfit between joints that the scales have to remove
ABSURD_SCALE = 6.0  # times: no single drive is so far off
NOMINAL_DENIES = 1.8  # times: how far the nominal model may be off a scale before it contradicts it
SMALL_CONTRADICTION = 0.2  # misfit between joints, in units of the noise of all rows, below which nothing is said

# -- hypotheses that are weighed --------------------------------------------------------------------------
MATERIAL = 0.82  # share of the misfit, inside the fit and on blocks left out, that the best hypothesis leaves at most
SECOND_MATERIAL = 0.5  # the same, beside a cause that was found before
GAP_EXPLAINED = 0.35  # of a joint's misfit on blocks left out that a gap in its gear has to explain
SCREEN_HOPED = 0.95  # share of the misfit in the screen's rows that a hypothesis leaves at most to be searched and
#                      judged
CONTRADICTION_ASKED = 1.08  # misfit of all joints together over that of each alone, from which motion and mounting are
#                             doubted
ROUGH_JOINT = 0.03  # share of a joint's torque that its own equations leave, from which they are doubted as well
MIXED_JOINT = 0.04  # share of a joint's torque that its own equations leave where its columns may be another's
TORQUE_WORTH = 0.007  # share of some joint's torque that the best hypothesis has to explain
GRAVITY_TURNED = 5.0  # degrees that gravity has to be off

# -- motion and signals ------------------------------------------------------------------------------------
DEGREES_LIMIT_RATIO = 3.0  # times the limit of a joint that its positions reach where they look like degrees
LIMIT_SLACK = 0.05  # rad or m beyond a limit that are not reported: limits of files are rounded
TOO_FAST_RATIO = 1.5  # times the speed limit that a joint has to reach to be reported
SATURATED_SHARE = 0.002  # share of a log's rows at a torque limit from which they are reported
REPEATED_SHARE = 0.4  # share of rows that repeat the row before; every row twice makes a half, a real log has 0.235
CLOCK_OFF = 0.05  # from one: factor between measured and differentiated velocity from which the clock is wrong
CLOCK_CORRELATION = 0.95  # correlation of the two from which that factor counts

# -- amount of data ----------------------------------------------------------------------------------------
MIN_EQUATIONS = 5.0  # equations for each base parameter, below which a log is too short
MIN_INDEPENDENT = 2.0  # the same, counted in independent equations
MAX_CONDITION = 200.0  # condition number of the scaled columns; good trajectories reach 20 to 50

# -- residuals: a pattern is reported where all of these hold ------------------------------------------------
PATTERN_SHARE = 0.2  # share of the residual's power that it explains on blocks left out, or
PATTERN_OF_OWN = 0.8  # share of what the joint's own equations leave
PATTERN_STRENGTH = 12.0  # its F statistic
CERTAIN_STRENGTH = 1000.0  # F statistic
PATTERN_BLOCKS = 0.7  # share of the blocks of cross-validation that it explains, or that a robust fit predicts better
INDISTINGUISHABLE_RATIO = 0.9  # what the best pattern leaves over what another leaves: from here both are named
SAME_EXPLANATION = 0.97  # the same, from which the simpler one stands first
COLOURED_SHARE = 0.5  # share of a residual that its past predicts, from which it is autocorrelated
MATERIAL_RESIDUAL = 0.03  # share of a joint's torque from which the shape of a residual is reported
ROBUST_GAIN = 0.01  # share by which a robust fit has to shrink the typical residual for outliers to be reported
LOW_R2 = 0.8  # share of the variance of a torque that the model has to explain
SECOND_FAULT_TORQUE = 0.05  # share of a joint's torque that a pattern has to be beside a cause found before

# -- values --------------------------------------------------------------------------------------------------
NEGATIVE_STANDARD_ERRORS = 2.0  # standard errors below zero from which a value is negative
VALUE_FALSE_ALARM = 0.01  # probability that chance puts one of all values as far below zero, or that the last link
#                           differs as much from a file whose errors are alike in all links
LARGE_OFFSET = 0.6  # share of a joint's torque from which an offset is large
PRICE_RATIO = 1.5  # times the unconstrained error from which consistency has a large price
TERM_GAIN = 0.5  # percent of a joint's error that a friction term has to take in cross-validation
TERM_GAIN_ERRORS = 2.0  # standard errors over the blocks, likewise

# -- cut-off -------------------------------------------------------------------------------------------------
CUTOFF_OF_ERROR = 0.5  # share of the error on unseen data that predictions have to change by at another cut-off, and
CUTOFF_OF_TORQUE = 1.0  # percent of the torques
CUTOFF_KNOWN = 30.0  # percent: relative standard error up to which the change of a parameter counts
CUTOFF_PERCENT = 20.0  # percent of its value

# -- other logs and blocks of time ---------------------------------------------------------------------------
WORSE_RATIO = 2.0  # times the error on the fitted log from which another log is predicted worse
SLOPE_CHANGE = 0.1  # change of measured over predicted torque from which a joint's torque has another scale
SCALE_LEAVES = 0.5  # share of the misfit that another scale leaves at most where it is the cause
ODD_BLOCK_RATIO = 3.0  # times the error of the median block from which a block is unusual
NOT_CONSTANT_RATIO = 3.0  # times the standard errors that parameters vary between blocks

# -- signs and columns ---------------------------------------------------------------------------------------
WRONG_SIGN_SHARE = 0.9  # share of the evidence of a joint's inertias that has to be for the wrong sign
WRONG_FRICTION_SIGN_SHARE = 0.5  # the same of all values where friction is among them: friction cannot add energy
MAX_SIGN_MISFIT = 0.3  # share of its torque that a joint's own equations leave where its sign is judged
SWAP_RATIO = 4.0  # times, in squares and on average, that exchanged torques are explained better in another order
MIXED_COLUMNS_SHARE = 0.08  # share of its torque that is left of some joint, on a typical block, where two columns of
#                             all joints' fit are exchanged
SWAP_LOG_GAIN = 4.0  # logarithm of squares, over all joints, that exchanging two columns has to gain

# -- the nominal model ---------------------------------------------------------------------------------------
WRONG_UNIT = 5.0  # times that torques have to be off the nominal model's: no drive or file is as far off
FEW_JOINTS_SHARE = 0.5  # share of the joints below which the nominal model explains few, and has to be farther off
UNIT_SPREAD = 0.3  # spread of the logarithms of the factors of all joints up to which one unit explains them
MAX_NOMINAL_MISFIT = 0.3  # share of a torque, in squares, that the scaled nominal model leaves where it is believed
NOMINAL_EXPLAINS = 0.8  # share of a torque that nominal gravity and accelerations explain where they are believed
NOMINAL_GRAVITY = 0.1  # share of a torque that gravity alone has to explain for that
LOAD_TORQUE = 0.3  # share of some torque that it has to be: files are wrong by tens of percent
FILE_ERROR = 0.15  # relative error of a file's links, each way that a motion shows: about 30 % of a whole link
CARRIED_GRAVITY = 0.2  # share of a joint's torque that nominal gravity has to be for its absence to be noticed
MAX_GRAVITY_LEFT = 0.2  # share of nominal gravity that is in the torque at most where gravity was removed
MAX_GRAVITY_PART = 0.1  # share of the torque that follows gravity at most: in a smaller unit it follows gravity still

# -- noise and delay of hypotheses ---------------------------------------------------------------------------
NOISE_FLOOR = 0.005  # share of a joint's torque: noise below that does not make a misfit matter more
GRAVITY_MISFIT_RATIO = 1.25  # times the least misfit up to which a direction of gravity may be the right one
COMMAND_PERIODS = 2.0  # sample periods: a command is held for one, and its motion is logged after another
SHORT_DELAY_WORTH = 2.0  # times as much torque that a delay no longer than that has to explain
