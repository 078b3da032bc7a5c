"""Instruments from noise-free motions: projected equations, their residuals, and the covariance of the estimate.

Z is the regressor along a noise-free motion. Two precautions are needed for unfiltered data:

- The sign of a noisy velocity is wrong near standstill, with an error that is correlated with the true velocity, so
  instruments do not correct it. Columns that are no polynomial of the velocity (dry friction) therefore use the
  measured velocity smoothed over a short window; its sign is wrong only in a few rows next to a reversal. (The
  instrument's own sign would require an exact loop: at half the bandwidth it reverses late and loses two thirds of
  the dry friction. A dead zone loses the rows that separate dry from viscous friction.)
- A second difference of encoder steps has a large variance but almost no power at the frequencies of the motion. Its
  product with a smooth Z cancels in the sum, but not at a jump of Z. Z is therefore tapered where rows are excluded,
  and its dry columns are smoothed. Z remains a valid instrument.
"""
