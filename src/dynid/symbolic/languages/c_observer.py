"""Momentum observer in C: external joint torques, one sample after the other.

The momentum P = M dq obeys dP/dt = u + r with u = tau - friction + C' dq - g and the external torques r. Its estimate
follows the integral of u + r with a gain K per joint, which gives r after a low-pass filter of time constant 1/K. u is
integrated by the trapezoidal rule and r implicitly, so that no gain makes it unstable.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynid.errors import ModelError
from dynid.symbolic.functions import Function

_TEXT = """\
/* State of the momentum observer. integral: of what the known torques give; known: those of the sample before. */
typedef struct {{
  {real} external[{n}], integral[{n}], known[{n}];
  int started;
}} {name}_observer;

/* Before the first sample, and after a gap. */
static inline void {name}_observer_start({name}_observer *state)
{{
  for (int j = 0; j < {n}; ++j) state->external[j] = state->integral[j] = state->known[j] = 0;
  state->started = 0;
}}

/* A sample: motion and motor torques tau. gain: 1/s of each joint, h: seconds since the sample before. external: joint
   torques from outside, behind a low-pass filter of the time constant 1 / gain. */
static inline void {name}_observer_update({name}_observer *state, {arguments}, const {real} tau[{n}],
                                          const {real} gain[{n}], {real} h, {real} external[{n}])
{{
  {real} p_m[{n}], beta[{n}], f[{n}];
  {name}_momentum({momentum}, p_m, beta);
  {name}_friction({friction}, f);
  for (int j = 0; j < {n}; ++j) {{
    const {real} known = tau[j] - f[j] + beta[j];
    if (state->started) {{
      const {real} middle = h * ({half} * (known + state->known[j]));
      state->external[j] = gain[j] * (p_m[j] - state->integral[j] - middle) / (1 + gain[j] * h);
      state->integral[j] += middle + h * state->external[j];
    }} else {{
      state->integral[j] = p_m[j];
    }}
    state->known[j] = known;
    external[j] = state->external[j];
  }}
  state->started = 1;
}}
"""


def momentum_observer(functions: Sequence[Function], name: str, real: str, joints: int) -> str:
    """Return the observer's functions; functions: those of the header, which include momentum and friction."""
    momentum, friction = (next(f for f in functions if f.name == one) for one in ("momentum", "friction"))
    sizes = dict([*momentum.inputs, *friction.inputs])
    if "ddq" in sizes:
        raise ModelError("the momentum observer does not know accelerations, on which friction from load depends",
                         "leave out 'observer', or the friction that depends on load", code="load-dependent-friction")
    order = [one for one in ("q", "q_follow", "dq", "memory", "p") if one in sizes]
    return _TEXT.format(name=name, real=real, n=joints, half="0.5f" if real == "float" else "0.5",
                        arguments=", ".join(f"const {real} {one}[{sizes[one]}]" for one in order),
                        momentum=", ".join(one for one, _ in momentum.inputs),
                        friction=", ".join(one for one, _ in friction.inputs))
