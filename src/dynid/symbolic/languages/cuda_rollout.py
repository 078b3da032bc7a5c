"""Rollouts in CUDA: many closed loops under a PD law, each state in the registers of one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_STEPS = """\
/* A step of h seconds under constant torques by the semi-implicit Euler method. */
{N}_DEVICE {name}_euler({real} q[{n}], {real} dq[{n}], const {real} tau[{n}], {inner}{real} h)
{{
  {real} ddq[{n}];
  {name}_forward_dynamics({call});
  {N}_UNROLL for (int k = 0; k < {n}; ++k) {{
    dq[k] += h * ddq[k];
    q[k] += h * dq[k];
  }}
}}

/* The same by the classical Runge-Kutta method of fourth order. */
{N}_DEVICE {name}_rk4({real} q[{n}], {real} dq[{n}], const {real} tau[{n}], {inner}{real} h)
{{
  {real} ddq[{n}], q_at[{n}], dq_at[{n}], q_sum[{n}], dq_sum[{n}];
  {N}_UNROLL for (int k = 0; k < {n}; ++k) {{
    q_at[k] = q[k];
    dq_at[k] = dq[k];
    q_sum[k] = dq_sum[k] = 0;
  }}
  {N}_LOOP for (int stage = 0; stage < 4; ++stage) {{
    const {real} weight = stage == 0 || stage == 3 ? {one} : {two}, ahead = stage == 2 ? h : {half} * h;
    {name}_forward_dynamics({call_at});
    {N}_UNROLL for (int k = 0; k < {n}; ++k) {{
      q_sum[k] += weight * dq_at[k];
      dq_sum[k] += weight * ddq[k];
      q_at[k] = q[k] + ahead * dq_at[k];
      dq_at[k] = dq[k] + ahead * ddq[k];
    }}
  }}
  {N}_UNROLL for (int k = 0; k < {n}; ++k) {{
    q[k] += h / 6 * q_sum[k];
    dq[k] += h / 6 * dq_sum[k];
  }}
}}
"""

_KERNEL = """\
{N}_KERNEL {name}_rollout_{method}_kernel({arguments_restrict})
{{
  {N}_EACH(i, count) {{
    {real} q_i[{n}], dq_i[{n}], tau_i[{n}], q_wanted[{n}], dq_wanted[{n}];{declared}
    const {real} kp[{n}] = {{{kp}}}, kd[{n}] = {{{kd}}}, limit[{n}] = {{{limit}}};
    const size_t stride = reference_each ? count : 1, first = reference_each ? i : 0;
    {N}_UNROLL for (size_t k = 0; k < {n}; ++k) {{
      q_i[k] = q[k * count + i];
      dq_i[k] = dq[k * count + i];
      q_wanted[k] = q_i[k];
      dq_wanted[k] = 0;
    }}{loaded}
    {N}_LOOP for (int s = 0; s < steps; ++s) {{
      if (s < reference_rows) {{ /* the last row stays in registers */
        {N}_UNROLL for (size_t k = 0; k < {n}; ++k) {{
          q_wanted[k] = q_ref[((size_t)s * {n} + k) * stride + first];
          dq_wanted[k] = dq_ref[((size_t)s * {n} + k) * stride + first];
        }}
      }}
      {N}_UNROLL for (size_t k = 0; k < {n}; ++k) {{
        const {real} wanted = kp[k] * (q_wanted[k] - q_i[k]) + kd[k] * (dq_wanted[k] - dq_i[k]);
        tau_i[k] = fmin{f}(fmax{f}(wanted, -limit[k]), limit[k]);
      }}{before}
      {name}_{method}(q_i, dq_i, tau_i, {given}h);{after}
      if (path && (s + 1) % every == 0) {{
        const size_t record = (size_t)((s + 1) / every - 1) * {twice};
        {N}_UNROLL for (size_t k = 0; k < {n}; ++k) {{
          path[(record + k) * count + i] = q_i[k];
          path[(record + {n} + k) * count + i] = dq_i[k];
        }}
      }}
    }}
    {N}_UNROLL for (size_t k = 0; k < {n}; ++k) {{
      q[k * count + i] = q_i[k];
      dq[k * count + i] = dq_i[k];
    }}{stored}
  }}
}}
"""

_WRAPPER = """\
/* Rollouts by the {about}: `steps` steps of h seconds from q and dq ({n} x count), which are
   replaced by the final states{of_memory}. Torques of a step are constant: kp (q_ref - q) + kd (dq_ref - dq) at its
   start, within +-limit; kp, kd, limit ({n}) are arrays of the host. q_ref, dq_ref: reference_rows rows, one or more, a
   row a step, of which the last is kept; ({n}) for all states with reference_each = 0, ({n} x count) with 1.
   path: null, or (steps / every x {twice} x count) for q and dq after every so many steps. */
static inline int {name}_rollout_{method}_batch({arguments}, {name}_stream stream)
{{
  (void)stream;
  if (count == 0) return 0;
  {N}_LAUNCH({name}_rollout_{method}_kernel, count, stream, {names});
  return {name}_launched();
}}
"""

LAW = ("kp", "kd", "limit")
ROLLOUT_METHODS = {"euler": "semi-implicit Euler method", "rk4": "Runge-Kutta method of fourth order"}


def _arguments(program: Program, real: str, gains: list[str], restrict: str = "") -> list[str]:
    """Return the declarations of the arguments of a rollout in CUDA. gains: declarations of the gains of the control
    law."""
    own = [f"{real} *{restrict}memory"] if program.plan.remembers else []
    given = [f"const {real} *{restrict}p", "int p_each"] if program.mode != "fixed" else []
    return [f"{real} *{restrict}q", f"{real} *{restrict}dq", *own, f"const {real} *{restrict}q_ref",
            f"const {real} *{restrict}dq_ref", "int reference_rows", "int reference_each",
            *gains, *given, f"{real} h", "int steps",
            f"{real} *{restrict}path", "int every", "size_t count"]


def rollout(program: Program, name: str, real: str) -> tuple[str, str]:
    """Return the CUDA kernels for rollouts, and the host functions that launch them, as text."""
    N, n, size, count = name.upper(), program.plan.dof, program.plan.remembers, len(program.numbers)
    inputs = [one for one, _ in program.function("forward_dynamics").inputs]
    inner = [(one, length) for one, length in (("memory", size), ("p", count)) if one in inputs]
    f = "f" if real == "float" else ""
    law = {one: [f"{one}_{k}" for k in range(n)] for one in LAW}
    # Gains are arguments one by one, which instructions read where they are: they take no registers.
    scalars = [f"{real} {item}" for items in law.values() for item in items]
    kernel, host = (_arguments(program, real, *rest) for rest in (
        (scalars, f"{N}_RESTRICT "), ([f"const {real} *{one}" for one in LAW],)))
    names = [one.split()[-1].lstrip("*") for one in host]
    words: dict[str, Any] = {
        **{one: ", ".join(items) for one, items in law.items()},
        "N": N, "name": name, "real": real, "n": n, "twice": 2 * n, "f": f, "one": f"1.0{f}", "two": f"2.0{f}",
        "half": f"0.5{f}", "inner": "".join(f"const {real} {one}[{length}], " for one, length in inner),
        "call": ", ".join([*inputs, "ddq"]),
        "call_at": ", ".join([*(f"{one}_at" if one in ("q", "dq") else one for one in inputs), "ddq"]),
        "given": "".join(f"{one}_i, " for one, _ in inner),
        "arguments": ", ".join(host), "arguments_restrict": ", ".join(kernel),
        "names": ", ".join(f"{one}[{k}]" if one in LAW else one for one in names
                           for k in range(n if one in LAW else 1)),
        "of_memory": f", and so is memory ({size} x count)" if size else "",
        "declared": "", "loaded": "", "before": "", "after": "", "stored": ""}
    if "p" in inputs:
        words["declared"] += f"\n    {real} p_i[{count}];"
        words["loaded"] += (f"\n    {N}_UNROLL for (size_t k = 0; k < {count}; ++k) "
                            "p_i[k] = p[p_each ? k * count + i : k];")
    elif program.mode != "fixed":  # nothing of the model depends on p
        words["declared"] += "\n    (void)p; (void)p_each;"
    if size:
        every = f"\n    {N}_UNROLL for (size_t k = 0; k < {size}; ++k) "
        copied = f"\n      {N}_UNROLL for (size_t k = 0; k < {{}}; ++k) "
        words["declared"] += f"\n    {real} memory_i[{size}], memory_before[{size}], q_before[{n}], dq_before[{n}];"
        words["loaded"] += every + "memory_i[k] = memory[k * count + i];"
        words["before"] = (copied.format(n) + "{ q_before[k] = q_i[k]; dq_before[k] = dq_i[k]; }"
                           + copied.format(size) + "memory_before[k] = memory_i[k];")
        words["after"] = f"\n      {name}_step(q_before, dq_before, memory_before, q_i, dq_i, memory_i);"
        words["stored"] = every + "memory[k * count + i] = memory_i[k];"
    kernels = [_KERNEL.format(**words, method=method) for method in ROLLOUT_METHODS]
    wrappers = [_WRAPPER.format(**words, method=method, about=about) for method, about in ROLLOUT_METHODS.items()]
    return "\n".join([_STEPS.format(**words), *kernels]), "\n".join(wrappers)
