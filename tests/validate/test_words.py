"""Names of joints and percentages in sentences."""

from __future__ import annotations

import pytest

from dynid.quantities import percent_text
from dynid.validate.words import joint_label, joints_listed, span


@pytest.mark.parametrize(("names", "words"), [
    (["joint3"], "joint 3"), (["joint_2", "joint 3"], "joints 2 and 3"), (["carriage"], "joint carriage"),
    (["a", "b", "c"], "joints a, b and c"), (["panda_joint2", "panda_joint4"], "panda_joint2 and panda_joint4"),
    (["joint1", "panda_joint4"], "joint 1 and panda_joint4"),
])
def test_joints_as_a_sentence_names_them(names, words):
    assert joints_listed(names) == words
    if len(names) == 1:
        assert joint_label(names[0]) == words


@pytest.mark.parametrize(("percent", "text"), [(0.0123, "0.012 %"), (0.48, "0.48 %"), (5.14, "5.1 %"), (9.4, "9.4 %"),
                                               (9.6, "10 %"), (42.4, "42 %"), (99.7, "100 %"), (1234.5, "1234 %")])
def test_percentages_have_no_power_of_ten(percent: float, text: str) -> None:
    assert percent_text(percent) == text


def test_a_span_ends_at_a_hundred_percent() -> None:
    assert span([51.2, 99.8]) == "51 to 100 %"
