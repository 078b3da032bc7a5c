"""The thresholds of the verdict: name, value, unit, and what each decides.

Values were chosen on simulated machines with seed 3 of the robots that `reproductions/_faulty_machines.py` lists as
chosen on, and with the open real logs in view: no real machine was reserved for testing them. The table is not
complete: the residual tests, the nominal model's and some smaller modules have thresholds of their own.
"""

from __future__ import annotations

# -- another log -----------------------------------------------------------------------------------------
# Excess: share of the misfit of one set of parameters for each part that one set for both parts leaves above it.
SAME_MACHINE_EXCESS = 0.5  # share: excess between two logs up to which one machine explains both
OTHER_MACHINE_EXCESS = 2.0  # share: excess, friction free, from which the logs are of different machines, and excess
#                             from which a load or a gain changed; logs of one real machine reach 1.1
OTHER_MACHINE_RATIO = 3.0  # times the excess between contiguous parts of one log that it has to exceed besides
CHANGE_EXPLAINED = 0.9  # share of the excess that a load, a gain or friction has to explain to be named; a load on
#                         two logs of one real double pendulum explains 0.86
OVERFIT_RATIO = 2.0  # times, in squares, that the estimate's error on the other log is above that of both logs' fit
MIN_BLOCKS_FOR_STEP = 6  # blocks of time that a log needs for a load that changes within it to be looked for

# -- faults beside flexible friction ---------------------------------------------------------------------
EQUALLY_EXPLAINED = 1.1  # times what is left, in squares: two explanations nearer than that are not distinguished
SAME_MISFIT = 1e-4  # share: difference of two misfits that is rounding
UNRELATED_SHARE = 0.25  # share of a torque's variation that the model leaves on a typical block left out where torques
#                         and motion do not belong together
DELAYED_JOINTS = 0.5  # share of the moving joints whose torques have to be late for the log to be: they share a bus,
#                       and what one joint's term for a delay takes up is friction
DELAY_STANDARD_ERRORS = 4.0  # of a delay from zero, from which it is reported

# -- signals -----------------------------------------------------------------------------------------------
NOISE_ACCELERATION = 0.5  # share of the power of accelerations that is noise of the positions where a cut-off is too
#                           high

# -- certainty ---------------------------------------------------------------------------------------------
RIVAL_WEIGHT = 0.05  # posterior weight from which another cause is named beside the best: "One of: ..."
EXCESS_EXPLAINED = 0.5  # share of the misfit above that of each joint's own fit that a cause has to explain
REMAINING_MISFIT = 8.0  # times the misfit of each joint's own fit that a cause may leave: where more is left, something
#                         else is wrong that may have made it look likely (1.5 in simulation, up to 6 on real machines)
UNEXPLAINED_MISFIT = 2.0  # misfit, in units of the joints' own noise, from which that nothing explains it is reported

# -- scales of torques against each other -----------------------------------------------------------------
SCALE_OFF = 0.12  # from one: a scale nearer than that is not wrong
SCALE_STANDARD_ERRORS = 4.0  # standard errors that a scale has to be from one to be wrong
LARGE_SCALE_ERROR = 0.2  # from one: a scale farther off is named however little of the misfit it makes
SCALE_KNOWN = 0.1  # standard error of a scale up to which it counts as known
SCALES_EXPLAIN = 0.6  # share of the misfit between joints that the scales have to remove
SCALE_NEEDED = 0.02  # of what the most important of them removes that each has to remove for itself
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
MOTIONS_REFINED = 4  # of the motion hypotheses that are refined
MIXED_JOINT = 0.04  # share of a joint's torque that its own equations leave where its columns may be another's
TORQUE_WORTH = 0.007  # share of some joint's torque that the best hypothesis has to explain
DELAY_WORTH = 0.02  # the same for a delay: what a filter leaves of friction at reversals looks like a small one
GRAVITY_TURNED = 5.0  # degrees that gravity has to be off
