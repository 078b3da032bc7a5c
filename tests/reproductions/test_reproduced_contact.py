"""A pushed virtual iiwa: pushes found in time on their link, and the model tracked while a person pushes."""

from __future__ import annotations

import contact_iiwa
import push_iiwa
import pytest


@pytest.mark.slow
def test_pushes_are_found_in_time_and_free_motion_is_not() -> None:
    result = contact_iiwa.run(lambda step: None, logs=1, free_logs=3)
    assert all(result["checks"].values()), result["checks"]


@pytest.mark.slow
def test_a_wrench_explains_what_a_tracked_model_does_not() -> None:
    result = push_iiwa.run(lambda step: None)
    assert all(result["checks"].values()), result["checks"]
