"""Every example of the README, the documentation and the docstrings runs."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

import numpy as np
import pytest
from documentation import DOCS, ROOT, run_page
from page_blocks import blocks, data_of

import dynid

DATA = Path(os.environ.get("DYNID_DATA", ROOT.parent / "shared" / "data"))
WALKED = sorted(page for folder in ("learn", "howto", "explain") for page in (DOCS / folder).glob("*.md"))
# Pages that take more than some seconds of a processor.
SLOW = {"learn/arm", "learn/payload", "learn/servo", "learn/quadruped", "howto/servos"}


def emps(names):
    """The published values, and a friction that differs by direction and holds on blocks left out."""
    published = {"M1": 95.1089, "Fv1": 203.5034, "Fc1": 20.3935, "Fo1": -3.1648}
    found = dict(zip(names["estimate"].names, names["estimate"].values, strict=True))
    assert all(abs(found[name] / value - 1.0) < 0.02 for name, value in published.items())
    assert names["better"].diagnostics["relative_error"] < 0.8 * names["estimate"].diagnostics["relative_error"]
    assert names["left_out"].mean < 3.2


def arm(names):
    errors = [dynid.reconstruct(names["found"][name], names["other"]).total.relative_error
              for name in ("wls", "pc-ridge", "the URDF's bodies")]
    assert errors == sorted(errors) and errors[1] < 1.6


def load(names):
    assert abs(names["found"].mass - 2.0) < 0.04 and names["low"] < 2.0 < names["high"] and not names["none"].seen
    assert names["sure"].mass_std < 0.2 * names["found"].mass_std


def live(names):
    assert names["error"] < 2.3 and names["change"].cause == "the load"


def servo(names):
    """Close to the simulation, whose own error shows in the delay; the first plan names what it cannot separate."""
    found, truth = names["found"], names["truth"]
    assert 1e3 * found.mean_error < 0.8
    assert all(abs(found["joint", name].value / value - 1.0) < 0.03 for name, value in truth.items() if name != "delay")
    assert abs(found["joint", "delay"].value - truth["delay"] + 1.25e-4) < 1e-4
    first, second = (Path(folder, "plan.md").read_text() for folder in ("first-plan", "plan"))
    assert "change together" in first and "Not determined" not in second


def walker(names):
    assert 0.95 <= names["inside"] <= 1.0
    assert 0.45 < np.median(names["weighed"].estimate.std / names["run"].estimate.std) < 0.65
    assert "33 of 106 base parameters" in names["run"].verdict.headline
    assert "39 of 106 base parameters" in names["weighed"].verdict.headline


def quadruped(names):
    """Armature of the calves: .03 to .04 by plain least squares, .043 to .053 by others (README.md of the data)."""
    found = names["found"]
    assert 1e3 * found.mean_error < 6.0 and len(names["robot"].joint_names) == 12
    calves = [found[f"{leg}_calf_joint", "armature"] for leg in ("FL", "FR", "RL", "RR")]
    assert all(0.02 < one.value < 0.08 for one in calves if one.identified)


# What a page says of its numbers.
CLAIMS = {"learn/emps": emps, "learn/arm": arm, "learn/payload": load, "learn/live": live, "learn/servo": servo,
          "learn/quadruped": walker,
          "howto/servos": quadruped}


def marked(page):
    name = f"{page.parent.name}/{page.stem}"
    return pytest.param(page, id=name, marks=[pytest.mark.slow] if name in SLOW else [])


@pytest.mark.parametrize("page", [marked(page) for page in WALKED])
def test_a_page_runs_from_top_to_bottom(page, at_desk, monkeypatch):
    missing = [name for name in data_of(page) if not (DATA / name).exists()]
    if missing:
        pytest.skip(f"needs the data folder: {', '.join(missing)} not below DYNID_DATA")
    monkeypatch.setenv("DYNID_DATA", str(DATA))
    CLAIMS.get(f"{page.parent.name}/{page.stem}", len)(run_page(page))


@pytest.mark.parametrize("page", sorted(set(DOCS.glob("*.md")) - {DOCS / "tutorial.md"}), ids=lambda page: page.stem)
def test_the_examples_of_the_reference_run(page, at_desk):
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.text, page.name, "exec"), {"__name__": "__main__"})


def test_the_tutorial_runs_and_ends_with_a_robot(at_desk):
    run_page(DOCS / "tutorial.md")
    assert (at_desk / "second" / "robot.urdf").exists()


def printed_in(page, run):
    """Whether a page prints the verdict of a run as the command does, whatever the width of the lines."""
    return " ".join(" ".join(run.verdict.summary.lines).split()) in " ".join(page.read_text().split())


def test_the_verdict_of_the_tutorial_is_what_is_printed(at_desk):
    assert printed_in(DOCS / "tutorial.md", dynid.run(dynid.RunSettings.load("run.toml")))


@pytest.mark.skipif(not (DATA / "panda").exists(), reason="needs the data folder: panda is not below DYNID_DATA")
def test_the_verdict_of_the_readme_is_what_is_printed(tmp_path):
    time, *signals = (np.loadtxt(DATA / "panda" / f"exciting_traj_{name}.txt")
                      for name in ("time", "positions", "velocity", "torques"))
    names = ["time", *(f"{name}{j}" for name in ("q", "dq", "tau") for j in range(1, 8))]
    np.savetxt(tmp_path / "panda.csv", np.column_stack([time, *(one.reshape(-1, 7) for one in signals)]),
               delimiter=",", header=",".join(names), comments="", fmt="%.9g")
    run = dynid.identify(DATA / "panda" / "panda_arm.urdf", tmp_path / "panda.csv", simulation={"run": False})
    assert printed_in(ROOT / "README.md", run)


def test_the_run_file_of_the_tutorial_is_the_one_of_the_example():
    (text,) = (block.text for block in blocks(DOCS / "tutorial.md") if block.language == "toml")
    assert text == (DOCS / "example" / "run.toml").read_text()


def test_the_example_of_the_readme_runs(at_desk, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    names: dict = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "Good model" in capsys.readouterr().out and names["run"].validations
    assert names["estimate"].diagnostics["rank"] == 64


def documented():
    """Public names and what their classes define, each with its docstring."""
    spaces = [dynid, dynid.terms, dynid.controllers, dynid.trajectories, dynid.literature]
    for name, thing in ((name, getattr(space, name)) for space in spaces for name in space.__all__):
        if getattr(thing, "__doc__", None) and callable(thing):
            yield name, thing


SHOWN = ("Robot", "Recording", "Samples", "prepare", "Model", "base_parameters", "fold", "identify", "Estimate",
         "verdict", "Online", "payload", "excite", "Consistency", "generate")


def test_the_examples_of_docstrings_run():
    finder = doctest.DocTestFinder(recurse=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    tried = set()
    for name, thing in documented():
        for test in finder.find(thing, name, globs={"dynid": dynid, "np": np}):
            if test.examples:
                tried.add(name)
                runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
    assert set(SHOWN) <= tried
