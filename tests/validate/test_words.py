"""Names of joints in sentences."""

from __future__ import annotations

import pytest

from dynid.validate.words import joint_label, joints_listed


@pytest.mark.parametrize(("names", "words"), [
    (["joint3"], "joint 3"), (["joint_2", "joint 3"], "joints 2 and 3"), (["carriage"], "joint carriage"),
    (["a", "b", "c"], "joints a, b and c"), (["panda_joint2", "panda_joint4"], "panda_joint2 and panda_joint4"),
    (["joint1", "panda_joint4"], "joint 1 and panda_joint4"),
])
def test_joints_as_a_sentence_names_them(names, words):
    assert joints_listed(names) == words
    if len(names) == 1:
        assert joint_label(names[0]) == words
