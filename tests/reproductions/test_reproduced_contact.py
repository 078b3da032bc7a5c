"""A pushed virtual iiwa: pushes found in time on their link, and the model tracked while a person pushes."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_pushes_are_found_in_time_and_free_motion_is_not() -> None:
    reproduced("contact_iiwa", logs=1, free_logs=3)


@pytest.mark.slow
def test_a_wrench_explains_what_a_tracked_model_does_not() -> None:
    reproduced("push_iiwa")
