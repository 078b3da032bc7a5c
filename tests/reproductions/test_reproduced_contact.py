"""A pushed virtual iiwa: pushes found in time on their link, and the model tracked while a person pushes."""

from __future__ import annotations

import contact_iiwa
import push_iiwa
import pytest


@pytest.mark.slow
def test_pushes_are_found_in_time_and_free_motion_is_not(monkeypatch) -> None:
    monkeypatch.setattr(contact_iiwa, "LOGS", 1)
    monkeypatch.setattr(contact_iiwa, "FREE_LOGS", 3)
    result = contact_iiwa.run(lambda step: None)
    assert all(result["checks"].values()), result["checks"]


@pytest.mark.slow
def test_a_wrench_explains_what_a_tracked_model_does_not() -> None:
    result = push_iiwa.run(lambda step: None)
    assert all(result["checks"].values()), result["checks"]
