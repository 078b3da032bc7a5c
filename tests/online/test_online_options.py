"""Online: options that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import Truth, truth

from dynid.errors import ModelError
from dynid.online import Online, VectorForgetting


@pytest.fixture(scope="module")
def data() -> Truth:
    return truth(10)


@pytest.mark.parametrize(("options", "words"), [
    ({"method": "als"}, "no recursive method"), ({"forgetting": "slowly"}, "no forgetting"),
    ({"forgetting": 1.5}, "forgetting factor"), ({"forgetting": "exponential:a"}, "no number"),
    ({"method": "s-rls-b", "forgetting": 0.99}, "no forgetting"), ({"noise": -1.0}, "above zero"),
    ({"noise": [1.0, 2.0]}, "one for each joint"), ({"prior": (0.0, -1.0)}, "above zero"),
    ({"prior": (np.zeros(5), 1.0)}, "one per base"), ({"prior": {"M9": (1.0, 0.1)}}, "no parameter"),
    ({"slow": -1.0}, "not below zero"), ({"forgetting": VectorForgetting({"Q": 0.9})}, "vector forgetting")])
def test_wrong_options_end_in_a_sentence(data: Truth, options: dict, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Online(data.model, **options)
