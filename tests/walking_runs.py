"""Runs from log files of a walker of MuJoCo's world."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import dynid
from dynid.runs.identification import Run
from reproductions._walking_world import WorldLog, quadruped_walker, world_log

SETTINGS = {"method": "wls", "friction": "viscous", "prepare": {"cutoff": 14.0}, "simulation": {"run": False}}


@cache
def walk() -> WorldLog:
    return world_log(quadruped_walker(), 11, duration=6.0)


@cache
def short_walk() -> WorldLog:
    """The first half of it, where neither the verdict nor the intervals are tested."""
    whole = walk()
    half = len(whole.t) // 2
    return replace(whole, t=whole.t[:half], signals={name: one[:half] for name, one in whole.signals.items()})


def identified(folder: Path, world: WorldLog, *leave_out: str, robot: str = "", **settings) -> Run:
    """Identify a log without some of its signals; robot: another description than the walker's own."""
    file = folder / "robot.xml"
    file.write_text(robot or world.walker.text)
    rules = {"foot_radius": 0.022} | settings.pop("log", {})
    return dynid.identify(file, world.write(folder / "log.csv", *leave_out), log=rules,
                          model={"rotor": True, "friction": ["viscous"]}, **{**SETTINGS, **settings})


@cache
def healthy(*leave_out: str) -> Run:
    """The run of the whole walk without some of its signals, whose files exist as long as this process."""
    folder = Path(_folder().name) / "-".join(["all", *leave_out])
    folder.mkdir()
    return identified(folder, walk(), *leave_out)


@cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()


def codes(run: Run) -> set[str]:
    return {finding.code for finding in run.verdict.of_kind("problem")}
