"""Closed-loop transfer functions and instruments from references, against responses by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lsim

from dynid.errors import NotPossibleError
from dynid.estimate.closed_loop.loop import Log
from dynid.estimate.instruments.transfer import closed_loop_transfer, filtered_references, plain_references
from dynid.recording import Samples
from dynid.simulation import Reference

RATE = 500.0
T = np.arange(3000) / RATE
TRUE = (1.0 / 400.0, 0.08, 0.01)  # a2, a1, b1


def path(w: float) -> np.ndarray:
    return 0.5 * np.sin(w * T) ** 2 + 0.1 * np.sin(3.1 * w * T) ** 2


def answer(x: np.ndarray) -> np.ndarray:
    a2, a1, b1 = TRUE
    return np.asarray(lsim(([b1, 1.0], [a2, a1, 1.0]), x, T)[1])


def test_the_transfer_function_is_found_from_several_logs_with_noise() -> None:
    rng = np.random.default_rng(0)
    pairs = [(path(w), answer(path(w)) + 1e-4 * rng.normal(size=len(T))) for w in (2.0, 6.0)]
    assert np.allclose(closed_loop_transfer(pairs, RATE), TRUE, rtol=0.01)


def test_filtered_references_are_the_motion_without_its_noise() -> None:
    q, rng = answer(path(4.0)), np.random.default_rng(1)
    noisy = (q + 1e-4 * rng.normal(size=len(T)))[:, None]
    samples = Samples.from_arrays(noisy, 0.0 * noisy, 0.0 * noisy, 0.0 * noisy, rate=RATE)
    log = Log(samples, Reference.from_arrays(path(4.0)[:, None], rate=RATE), False)
    motion, plain = filtered_references([log])[0], plain_references([log])[0]
    assert np.abs(motion.q[:, 0] - q).max() < 1e-4
    assert np.abs(motion.dq[5:-5, 0] - np.gradient(q, 1.0 / RATE)[5:-5]).max() < 2e-3 * np.abs(motion.dq).max()
    assert np.allclose(plain.q[:, 0], path(4.0), atol=1e-12)
    assert motion.tau is samples.tau


def test_a_joint_that_is_not_asked_to_move_is_followed_at_once() -> None:
    still = np.full(len(T), 0.3)
    a2, a1, _ = closed_loop_transfer([(still, still)], RATE)
    assert a1 <= 1.0 / RATE and a2 <= 1e-6


def test_what_no_transfer_function_explains_is_refused() -> None:
    with pytest.raises(NotPossibleError) as error:
        closed_loop_transfer([(path(2.0), np.full(len(T), np.nan))], RATE)
    assert error.value.code == "no-transfer-function"
