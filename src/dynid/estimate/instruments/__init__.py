"""Instruments from motions without noise: projected equations, their residuals, and the covariance of the estimate.

Z is the regressor along a motion without noise. Two precautions, both needed when nothing is filtered:

- The sign of a noisy velocity is wrong near standstill in a way that no instrument repairs, for its error follows the
  true velocity. Columns that are no polynomial of the velocity (dry friction of any kind) are therefore computed from
  the measured velocity smoothed over a short window: its sign is right but for the few rows next to a reversal. (The
  instrument's own sign would do only where the simulated loop is exactly the machine's: at half its bandwidth it
  reverses late and takes two thirds of the dry friction with it. A dead zone loses the rows that tell dry from
  viscous friction.)
- A second difference of encoder steps has a huge deviation and almost no power at the frequencies of the motion. Summed
  against a smooth Z it cancels; at a jump of Z it does not. So Z is tapered instead of cut where rows are left out, and
  its dry columns are smoothed over a short window. Any such change keeps Z a valid instrument.
"""

from dynid.estimate.instruments.covariance import spectral_covariance, spectral_freedom
from dynid.estimate.instruments.equations import Instrumented
from dynid.estimate.instruments.joint_deflection import with_joint_deflection
from dynid.estimate.instruments.measured import Measured
from dynid.estimate.instruments.projection import Projected, project
from dynid.estimate.instruments.residuals import LowRate, at_low_rate, low_decimation, low_rate, low_rate_scale
from dynid.estimate.instruments.shift import instrument_shift
from dynid.estimate.instruments.transfer import filtered_references, plain_references
from dynid.estimate.instruments.windows import WINDOW, smoothed_velocity, soften, taper

__all__ = [
           "WINDOW",
           "Instrumented",
           "LowRate",
           "Measured",
           "Projected",
           "at_low_rate",
           "filtered_references",
           "instrument_shift",
           "low_decimation",
           "low_rate",
           "low_rate_scale",
           "plain_references",
           "project",
           "smoothed_velocity",
           "soften",
           "spectral_covariance",
           "spectral_freedom",
           "taper",
           "with_joint_deflection",
]
