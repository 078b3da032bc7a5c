"""Online: options that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import Truth, truth
from refusals import refused

from dynid.errors import ModelError
from dynid.online import Online, VectorForgetting


@pytest.fixture(scope="module")
def data() -> Truth:
    return truth(10)


@pytest.mark.parametrize(("options", "words"), [
    ({"method": "als"}, ("unknown-method", "'als'")), ({"forgetting": "slowly"}, ("unknown-forgetting", "'slowly'")),
    ({"forgetting": 1.5}, ("bad-forgetting-factor", "1")),
    ({"forgetting": "exponential:a"}, ("bad-forgetting-factor", "'exponential:a'")),
    ({"method": "s-rls-b", "forgetting": 0.99}, ("forgetting-not-supported", "'s-rls-b'")),
    ({"noise": -1.0}, ("bad-noise", "-1")),
    ({"noise": [1.0, 2.0]}, ("bad-noise", "3")), ({"prior": (0.0, -1.0)}, ("bad-prior-std",)),
    ({"prior": (np.zeros(5), 1.0)}, ("bad-prior-shape", "24")), ({"prior": {"M9": (1.0, 0.1)}}, ("bad-model", "'M9'")),
    ({"slow": -1.0}, ("bad-model", "slow", "-1.0")),
    ({"forgetting": VectorForgetting({"Q": 0.9})}, ("unknown-forgetting-name", "'Q'"))])
def test_wrong_options_end_in_a_sentence(data: Truth, options: dict, words: tuple[str, ...]) -> None:
    with refused(ModelError, *words):
        Online(data.model, **options)
