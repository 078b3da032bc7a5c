"""Online estimation in C of the parameters p of generated functions, sample by sample, in square-root form.

The estimate is stored as the upper triangle R of the QR factorisation of all rows [Y tau] / noise so far. A new row is
eliminated by Givens rotations, as in `dynid.Online`, so that the covariance stays positive; p is computed by back
substitution.
"""

from __future__ import annotations

from dynid.symbolic.functions import Function

_EXCITED_SHARE = {"double": "1e-9", "float": "1e-5f"}  # of a column's norm that is independent of the others

_TEXT = """\
/* Estimate of p: the rows of the triangular factor of [Y tau] / noise, each from its diagonal on. squares: sum of
   squared residuals in units of the noise. rows: number of rows so far. */
typedef struct {{
  {real} r[{size}];
  {real} squares, rows;
}} {name}_online;

/* Start with prior values p and their standard deviations; zero or less means an unknown value. */
static inline void {name}_online_start({name}_online *known, const {real} p[{b}], const {real} std[{b}])
{{
  {real} *row = known->r;
  for (int i = 0; i < {size}; ++i) known->r[i] = 0;
  for (int i = 0; i < {b}; ++i) {{
    if (std[i] > 0) {{
      row[0] = 1 / std[i];
      row[{b} - i] = p[i] / std[i];
    }}
    row += {b} + 1 - i;
  }}
  known->squares = 0;
  known->rows = 0;
}}

/* Add one row x: {b} columns and the torque, divided by the noise. The row is overwritten. */
static inline void {name}_online_row({name}_online *known, {real} x[{width}])
{{
  {real} *row = known->r;
  for (int i = 0; i < {b}; ++i) {{
    if (x[i] != 0) {{
      const {real} h = sqrt{f}(row[0] * row[0] + x[i] * x[i]), c = row[0] / h, s = x[i] / h;
      row[0] = h;
      for (int k = 1; k <= {b} - i; ++k) {{
        const {real} a = row[k], d = x[i + k];
        row[k] = c * a + s * d;
        x[i + k] = c * d - s * a;
      }}
    }}
    row += {b} + 1 - i;
  }}
  known->squares += x[{b}] * x[{b}];
  known->rows += 1;
}}

/* Add a sample: motion and torques. noise: standard deviation of each torque; a joint with a noise of zero or less is
   ignored. forgetting: 1, or a smaller factor by which the weight of all previous samples is multiplied. */
static inline void {name}_online_update({name}_online *known, {arguments}, const {real} tau[{n}],
                                        const {real} noise[{n}], {real} forgetting)
{{
  {real} Y[{entries}], x[{width}];
  if (forgetting < 1) {{
    const {real} root = sqrt{f}(forgetting);
    for (int i = 0; i < {size}; ++i) known->r[i] *= root;
    known->squares *= forgetting;
    known->rows *= forgetting;
  }}
  {name}_regressor({inputs}, Y);
  for (int j = {n} - 1; j >= 0; --j) {{
    if (noise[j] > 0) {{
      for (int k = 0; k < {b}; ++k) x[k] = Y[{b} * j + k] / noise[j];
      x[{b}] = tau[j] / noise[j];
      {name}_online_row(known, x);
    }}
  }}
}}

/* Compute p from all samples so far, zero where it is not excited; return how many numbers are excited. */
static inline int {name}_online_solve(const {name}_online *known, {real} p[{b}])
{{
  {real} squares[{b}] = {{0}};
  const {real} *row = known->r;
  int shown = 0;
  for (int i = 0; i < {b}; ++i) {{
    for (int k = i; k < {b}; ++k) squares[k] += row[k - i] * row[k - i];
    row += {b} + 1 - i;
  }}
  for (int i = {b} - 1; i >= 0; --i) {{
    row -= {b} + 1 - i;
    p[i] = 0;
    if (row[0] > {excited} * sqrt{f}(squares[i])) {{
      {real} sum = row[{b} - i];
      for (int k = i + 1; k < {b}; ++k) sum -= row[k - i] * p[k];
      p[i] = sum / row[0];
      ++shown;
    }}
  }}
  return shown;
}}
"""


def online_update(regressor: Function, name: str, real: str, joints: int, count: int) -> str:
    """Return the C functions that estimate `count` parameters p from samples; regressor: function Y of tau = Y p."""
    return _TEXT.format(name=name, real=real, f="f" if real == "float" else "", n=joints, b=count, width=count + 1,
                        size=(count + 1) * (count + 2) // 2 - 1, entries=joints * count, excited=_EXCITED_SHARE[real],
                        arguments=", ".join(f"const {real} {one}[{size}]" for one, size in regressor.inputs),
                        inputs=", ".join(one for one, _ in regressor.inputs))
