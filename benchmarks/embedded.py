"""Generated C on a Cortex-M4 in QEMU: errors in single precision, code size, stack and instructions per call.

The LWR IV+ with friction: torques of a motion, an update of the online estimation, and a step of the momentum observer.
Instructions are counted by the board's timer, which QEMU advances by one nanosecond an instruction (-icount shift=0).
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import NotPossibleError
from dynid.robot import Robot
from dynid.runs.motion_design import terms_model
from dynid.symbolic import Program, generate

COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"
CORE = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
FLAGS = [*CORE, "-std=c99", "-O2", "-ffunction-sections", "-fdata-sections", "-fstack-usage", "-Wall", "-Wextra",
         "-Wconversion", "-Werror"]
SAMPLES, STEP, GAIN = 40, 1e-3, 30.0  # of the motion; s; 1/s of the observer
_EMULATION_SECONDS = 120.0  # before a run that hangs is ended

_BOARD = r"""
#include <stdint.h>
extern uint32_t stack_top;
void reset(void);
int main(void);
__attribute__((section(".vectors"), used)) static void *const vectors[2] = {&stack_top, (void *)reset};

static int call_host(int operation, const void *argument)
{
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static void print(const char *text) { call_host(4, text); }

static void print_hex(const char *name, uint32_t bits)
{
  char text[11];
  for (int k = 0; k < 8; ++k) text[k] = "0123456789abcdef"[(bits >> (28 - 4 * k)) & 15];
  text[8] = '\n';
  text[9] = 0;
  print(name);
  print(" ");
  print(text);
}

static void print_float(const char *name, float value)
{
  union { float value; uint32_t bits; } one = {value};
  print_hex(name, one.bits);
}

#define TIMER ((volatile uint32_t *)0xe000e010)
static void start_timer(void)
{
  TIMER[1] = 0xffffff;
  TIMER[2] = 0;
  TIMER[0] = 5;
  while (TIMER[2] == 0) { } /* it counts from its first tick on */
}
static uint32_t ticks(void) { return 0xffffff - TIMER[2]; }

void reset(void)
{
  *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* the unit for float */
  __asm__ volatile("dsb\nisb");
  main();
  call_host(0x18, (const void *)0x20026);
  for (;;) { }
}
"""

_MAIN = r"""
#include "board.h"
#include "motion.h"
#include "calls.h"

static est_online known;
static watch_observer state;
static float p[est_p_count], tau[7], outside[7], zero[est_p_count];

int main(void)
{
  float noise[7], gain[7];
  uint32_t before, empty;
  for (int j = 0; j < 7; ++j) { noise[j] = 1.0f; gain[j] = GAIN; }
  start_timer();
  before = ticks();
  for (int i = 0; i < SAMPLES; ++i) __asm__ volatile("" ::: "memory");
  empty = ticks() - before;
  print_hex("ticks_empty", empty);
  before = ticks();
  for (int i = 0; i < SAMPLES; ++i) call_inverse_dynamics(q_at[i], dq_at[i], ddq_at[i], tau);
  print_hex("ticks_inverse_dynamics", ticks() - before);
  for (int i = 0; i < SAMPLES; ++i) {
    call_inverse_dynamics(q_at[i], dq_at[i], ddq_at[i], tau);
    for (int j = 0; j < 7; ++j) print_float("tau", tau[j]);
  }
  est_online_start(&known, zero, zero);
  start_timer();
  before = ticks();
  for (int i = 0; i < SAMPLES; ++i) call_online_update(&known, q_at[i], dq_at[i], ddq_at[i], tau_at[i], noise, 1.0f);
  print_hex("ticks_online_update", ticks() - before);
  start_timer();
  before = ticks();
  for (int i = 0; i < SAMPLES; ++i) call_online_solve(&known, p);
  print_hex("ticks_online_solve", ticks() - before);
  for (int k = 0; k < est_p_count; ++k) print_float("p", p[k]);
  watch_observer_start(&state);
  start_timer();
  before = ticks();
  for (int i = 0; i < SAMPLES; ++i) call_observer_update(&state, q_at[i], dq_at[i], tau_at[i], gain, STEP, outside);
  print_hex("ticks_observer_update", ticks() - before);
  for (int j = 0; j < 7; ++j) print_float("outside", outside[j]);
  print_float("self_test", arm_self_test());
  return 0;
}
"""

_SCRIPT = """
MEMORY { CODE (rx) : ORIGIN = 0x00000000, LENGTH = 4M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > CODE
  .ARM.exidx : { *(.ARM.exidx*) } > CODE
  .data : { *(.data*) } > RAM
  .bss : { *(.bss*) *(COMMON) } > RAM
  end = .;
  stack_top = ORIGIN(RAM) + LENGTH(RAM);
}
ENTRY(reset)
"""

# Name of the call, its C head, and the call of the header.
CALLS = {
    "inverse_dynamics": ("const float *q, const float *dq, const float *ddq, float *tau",
                         "arm_inverse_dynamics(q, dq, ddq, tau)"),
    "online_update": ("est_online *known, const float *q, const float *dq, const float *ddq, const float *tau, "
                      "const float *noise, float forgetting",
                      "est_online_update(known, q, dq, ddq, tau, noise, forgetting)"),
    "online_solve": ("const est_online *known, float *p", "(void)est_online_solve(known, p)"),
    "observer_update": ("watch_observer *state, const float *q, const float *dq, const float *tau, const float *gain, "
                        "float h, float *outside", "watch_observer_update(state, q, dq, tau, gain, h, outside)")}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    for one, package in ((COMPILER, "gcc-arm-none-eabi"), (EMULATOR, "qemu-system-arm")):
        if shutil.which(one) is None:
            raise NotPossibleError(f"this benchmark runs C on a Cortex-M, but {one} is not installed",
                                   f"install it, on Debian: apt-get install {package}", "missing-toolchain")
    programs = _programs()
    motion = _motion(programs["arm"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        progress("compiling for the Cortex-M4")
        _write(folder, programs, motion)
        sizes = _compiled(folder)
        progress("running in QEMU")
        printed = _run(folder)
    return {"robot": programs["arm"].plan.model.robot.name, "core": "cortex-m4", "flags": ["-O2"],
            "gcc": _version(COMPILER), "qemu": _version(EMULATOR), "functions": _counts(printed, sizes),
            "errors": _errors(programs, motion, printed)}


def _programs() -> dict[str, Program]:
    model = terms_model(Robot.builtin("kuka-lwr4"), ("viscous", "coulomb"), False)
    return {"arm": generate(model, ["inverse_dynamics"], parameters="fixed", name="arm"),
            "est": generate(model, ["online"], name="est"),
            "watch": generate(model, ["observer"], parameters="fixed", name="watch")}


def _motion(program: Program) -> dict[str, np.ndarray]:
    """q, dq, ddq (samples, 7) of a sum of sines and the torques that it needs, as float has them."""
    t = STEP * np.arange(SAMPLES)[:, None]
    rng = np.random.default_rng(0)
    found = [np.zeros((SAMPLES, 7)) for _ in range(3)]
    for _ in range(3):
        w, phase, size = rng.uniform(20.0, 120.0, 7), rng.uniform(0.0, 6.0, 7), rng.uniform(0.1, 0.5, 7)
        found[0] += size * np.sin(w * t + phase)
        found[1] += size * w * np.cos(w * t + phase)
        found[2] -= size * w * w * np.sin(w * t + phase)
    found = [x.astype(np.float32).astype(float) for x in found]
    tau = program("inverse_dynamics", q=found[0], dq=found[1], ddq=found[2])
    return dict(zip(("q", "dq", "ddq", "tau"), [*found, tau.astype(np.float32).astype(float)], strict=True))


def _write(folder: Path, programs: dict[str, Program], motion: dict[str, np.ndarray]) -> None:
    for name, program in programs.items():
        (folder / f"{name}.h").write_text(program.c("float"))
    lines = [f"enum {{ SAMPLES = {SAMPLES} }};", f"static const float STEP = {STEP!r}f, GAIN = {GAIN!r}f;"]
    for one, values in motion.items():
        rows = ",\n".join("{" + ", ".join(f"{x!r}f" for x in row) + "}" for row in values.tolist())
        lines.append(f"static const float {one}_at[SAMPLES][7] = {{\n{rows}}};")
    (folder / "motion.h").write_text("\n".join(lines) + "\n")
    headers = "".join(f'#include "{name}.h"\n' for name in programs)
    heads = "".join(f"void call_{one}({head});\n" for one, (head, _) in CALLS.items())
    (folder / "calls.h").write_text(headers + heads)
    for one, (head, call) in CALLS.items():  # each in a file of its own, so that its size and stack are its own
        (folder / f"{one}.c").write_text(f'#include "calls.h"\nvoid call_{one}({head})\n{{\n  {call};\n}}\n')
    (folder / "board.h").write_text(_BOARD)
    (folder / "main.c").write_text(_MAIN)
    (folder / "board.ld").write_text(_SCRIPT)


def _compiled(folder: Path) -> dict[str, dict[str, int]]:
    """Build the program; bytes of code and of stack of each call, functions of the C library not counted."""
    sizes = {}
    for one in (*CALLS, "main"):
        extra = ["-Wno-unused-function", "-Wno-unused-const-variable"]
        _checked([COMPILER, *FLAGS, *extra, "-c", f"{one}.c"], folder)
        if one in CALLS:
            text = _checked([COMPILER.replace("gcc", "size"), "-A", f"{one}.o"], folder)
            code = sum(int(size) for size in re.findall(r"^\.(?:text|rodata)\S*\s+(\d+)", text, re.MULTILINE))
            stack = sum(int(line.split("\t")[1]) for line in (folder / f"{one}.su").read_text().splitlines())
            sizes[one] = {"code": code, "stack": stack}
    objects = [f"{one}.o" for one in (*CALLS, "main")]
    _checked([COMPILER, *CORE, "-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections",
              "-Wl,--no-warn-rwx-segments", "-T", "board.ld", *objects, "-lm", "-o", "main.elf"], folder)
    return sizes


def _checked(command: list[str], folder: Path) -> str:
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise NotPossibleError(f"{command[0]} failed: {(found.stderr.strip().splitlines() or ['no message'])[0]}")
    return found.stdout


def _run(folder: Path) -> dict[str, list[int]]:
    """Return the values that the program prints, by name and in order."""
    command = [EMULATOR, "-M", "mps2-an386", "-kernel", "main.elf", "-nographic", "-monitor", "none", "-serial", "none",
               "-semihosting-config", "enable=on,target=native", "-icount", "shift=0"]
    try:
        found = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_EMULATION_SECONDS,
                               check=False)
    except subprocess.TimeoutExpired:
        raise NotPossibleError(f"the program did not end within {_EMULATION_SECONDS:.0f} s in QEMU") from None
    words: dict[str, list[int]] = {}
    for name, bits in re.findall(r"^(\w+) ([0-9a-f]{8})$", found.stdout + found.stderr, re.MULTILINE):
        words.setdefault(name, []).append(int(bits, 16))
    if "self_test" not in words:
        raise NotPossibleError("the program did not run to its end in QEMU")
    return words


def _counts(printed: dict[str, list[int]], sizes: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    tick = 40  # ns of the board's clock of 25 MHz, and so many instructions
    empty = printed["ticks_empty"][0]
    return {one: sizes[one] | {"instructions": round(tick * (printed[f"ticks_{one}"][0] - empty) / SAMPLES)}
            for one in CALLS}


def _errors(programs: dict[str, Program], motion: dict[str, np.ndarray],
            printed: dict[str, list[int]]) -> dict[str, float]:
    """Return errors relative to the largest value, compared with double precision on the host."""
    floats = {name: np.array([struct.unpack("<f", struct.pack("<I", bits))[0] for bits in words])
              for name, words in printed.items()}
    q, dq, ddq, tau = motion.values()
    exact = programs["arm"]("inverse_dynamics", q=q, dq=dq, ddq=ddq)
    rows = programs["est"]("regressor", q=q, dq=dq, ddq=ddq)
    return {"self_test": float(floats["self_test"][0]),
            "inverse_dynamics": _relative(floats["tau"].reshape(exact.shape), exact),
            "online": _relative(rows @ floats["p"], tau),  # torques by the estimate of these very torques
            "observer": float(np.abs(floats["outside"] - _observed(programs["watch"], q, dq, tau)).max()
                              / np.abs(tau).max())}


def _observed(program: Program, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """External torques (7,) at the last sample by the definition: the integral is a sum over all samples."""
    momentum, beta = program("momentum", q=q, dq=dq)
    known = tau - program("friction", q=q, dq=dq) + beta
    external = np.zeros_like(q)
    for k in range(1, len(q)):
        integral = momentum[0] + STEP * (0.5 * (known[1:k + 1] + known[:k]).sum(axis=0) + external[:k].sum(axis=0))
        external[k] = GAIN * (momentum[k] - integral) / (1.0 + GAIN * STEP)
    return external[-1]


def _relative(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _version(command: str) -> str:
    text = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"\d+\.\d+\.\d+", text)
    return found[0] if found else "unknown"


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("function", "code, B", "stack, B", "instructions a call")]
    rows += [(name, *(str(found[key]) for key in ("code", "stack", "instructions")))
             for name, found in result["functions"].items()]
    rows += [(f"error of {name}", f"{error:.1e}", "", "") for name, error in result["errors"].items()]
    return rows
