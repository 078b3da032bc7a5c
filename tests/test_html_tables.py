"""What notebooks show: numbers with units, and no text of a file as markup."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import dynid
from dynid.html_tables import card, listed, paragraph, table

EVIL = "<script>alert('x')</script>"


class Whole(HTMLParser):
    """Which tags there are, and that each is closed by its own."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def shown():
    """A robot, a recording, an estimate and a verdict whose names are markup."""
    plain = dynid.Robot.builtin("arm3r")
    joints = (replace(plain.joints[0], name=EVIL), *plain.joints[1:])
    robot = replace(plain, name=EVIL, joints=joints, source=EVIL, warnings=(EVIL,))
    model = dynid.Model(robot, dynid.make_terms(robot, friction=("viscous",)))
    t = np.arange(0.0, 5.0, 0.005)
    shares = 0.4 * np.random.default_rng(0).normal(size=(2, 3, 5))
    motion = dynid.trajectories.FourierSeries(*shares, np.zeros(3), 5.0).at(t)
    theta = [0.3 if one.symbol == "Fv" else one.nominal for one in model.parameters]
    tau = model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
    tau[:, 0] *= -1.0
    log = dynid.Recording(t, motion.q, tau, joints=robot.joint_names, source=EVIL, notes=(EVIL,))
    samples = dynid.Samples.from_arrays(motion.q, motion.dq, motion.ddq, tau, rate=200.0)
    samples = replace(samples, joints=robot.joint_names)
    problem = dynid.Problem.from_model(model, samples)
    estimate = dynid.identify(problem, method="wls")
    return {"robot": robot, "recording": log, "estimate": estimate,
            "verdict": dynid.verdict(estimate, problem, reconstruction=dynid.reconstruct(estimate, samples))}


@pytest.mark.parametrize("name", ["robot", "recording", "estimate", "verdict"])
def test_names_of_files_are_escaped_and_tags_closed(shown, name):
    page = Whole(shown[name]._repr_html_())
    assert "script" not in page.tags and set(page.tags) <= {
        "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "b", "details", "summary"}


def test_what_is_shown_of_each(shown):
    words = {name: " ".join(Whole(one._repr_html_()).words) for name, one in shown.items()}
    robot, log, estimate = shown["robot"], shown["recording"], shown["estimate"]
    assert EVIL in words["robot"] and f"{robot.bodies[2].inertia[9]:.4g}" in words["robot"]
    assert "mass, kg" in words["robot"] and "1,000 samples, 5.0 s at 200 Hz" in words["recording"]
    assert f"{np.abs(log.tau[:, 1]).max():.4g}" in words["recording"]
    assert all(one in words["estimate"] for one in (*estimate.names, "kg m^2"))
    assert all(one.title in words["verdict"] for one in shown["verdict"].findings)
    assert EVIL in words["verdict"]


def test_text_representations_are_one_short_line(shown):
    samples = dynid.Samples.from_arrays(*np.zeros((4, 9, 3)), source="log.csv")
    robot = dynid.Robot.builtin("arm3r")
    model = dynid.Model(robot)
    assert repr(robot) == "<Robot arm3r: 3 joints>" and repr(model) == "<Model of arm3r: 3 joints, 30 parameters>"
    assert repr(samples) == "<Samples of log.csv: 9 rows, 3 joints>"
    assert "1,000 samples, 5.0 s at 200 Hz" in repr(shown["recording"])
    for one in shown.values():
        assert "\n" not in repr(one) and "array(" not in repr(one) and len(repr(one)) < 600


def test_the_parts():
    assert Whole(listed([])).tags == [] and Whole(listed([("a", "b")], folded="more")).tags[0] == "details"
    page = Whole(card("t", paragraph("p & q"), table(("a", "b"), [("x", "1")])))
    assert page.words == ["t", "p & q", "a", "b", "x", "1"]
