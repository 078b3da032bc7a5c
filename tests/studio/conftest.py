"""Fixtures of the studio's tests: one Chromium, one studio a module, pages that may neither err nor ask outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import studio_client
from browser import ARGUMENTS, WINDOW, Served, Watch, chromium, new_context, opened, served

from dynid.model import Model
from dynid.robot import Robot
from dynid.studio.server import Opened


@pytest.fixture(scope="module", name="opened")
def opened_in_place(place: Path) -> Iterator[Opened]:
    """A studio in the workspace of a module's own folder, for tests that speak to its API."""
    with studio_client.served(place / "workspace") as found:
        yield found


@pytest.fixture(scope="session")
def chrome() -> Iterator[Any]:
    """Headless Chromium, or skip with the reason."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra dev")
    program = chromium()
    if program is None:
        pytest.skip("needs Chromium: none is on the path, and DYNID_CHROMIUM names none")
    with api.sync_playwright() as playwright:
        # Without a graphics card, smooth edges are a third of the work of drawing the scene; no test looks at them.
        browser = playwright.chromium.launch(executable_path=program,
                                             args=[*ARGUMENTS, "--webgl-antialiasing-mode=none"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def studio(chrome: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio for the tests of a module, on an empty folder."""
    with served(tmp_path_factory.mktemp("studio") / "work", warm=False) as running:
        yield running


@pytest.fixture
def new_page(chrome: Any, studio: Served) -> Iterator[Callable[..., Any]]:
    """new_page(**context options): a page of the studio in a browser of its own; another=True: one more tab of it."""
    watch = Watch(studio.origin)
    contexts: list[Any] = []

    def make(another: bool = False, **options: Any) -> Any:
        if not another:
            contexts.append(new_context(chrome, **options))
        return opened(watch.follow(contexts[-1].new_page()), studio.origin + "/" if another else studio.address)

    yield make
    for context in contexts:
        context.close()
    watch.check()


@pytest.fixture(scope="module")
def tab(chrome: Any, studio: Served) -> Iterator[tuple[Any, Watch]]:
    """One tab for the tests of a module: its scripts are compiled once. Each test loads the page again."""
    watch = Watch(studio.origin)
    context = new_context(chrome)
    yield opened(watch.follow(context.new_page()), studio.address), watch
    context.close()


@pytest.fixture
def page(tab: tuple[Any, Watch], studio: Served) -> Iterator[Any]:
    """The studio's page, loaded anew in the process of the last one."""
    page, watch = tab
    watch.clear()
    page.set_viewport_size(WINDOW)
    yield opened(page, studio.origin + "/")
    watch.check()


@pytest.fixture(scope="session")
def two_joints(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A URDF with two joints and visuals, and a CSV of 20 s of its motion with noise, from known parameters."""
    folder = tmp_path_factory.mktemp("two-joints")
    robot = folder / "arm.urdf"
    robot.write_text(URDF)
    arm = Robot.from_urdf(robot)
    model = Model(arm)
    t = np.arange(0.0, 20.0, 0.01)
    w = 2.0 * np.pi * np.array([[0.21, 0.47], [0.33, 0.59]])
    size = np.array([[0.8, 0.35], [0.7, 0.4]])
    q = np.stack([(size[j] * np.sin(np.outer(t, w[j]))).sum(1) for j in range(2)], axis=1)
    dq = np.stack([(size[j] * w[j] * np.cos(np.outer(t, w[j]))).sum(1) for j in range(2)], axis=1)
    ddq = np.stack([(-size[j] * w[j] ** 2 * np.sin(np.outer(t, w[j]))).sum(1) for j in range(2)], axis=1)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq) + VISCOUS * dq + COULOMB * np.sign(dq)
    noise = np.random.default_rng(5)
    columns = np.column_stack([t, q + 1e-5 * noise.standard_normal(q.shape),
                               tau + 0.05 * noise.standard_normal(q.shape)])
    log = folder / "log.csv"
    np.savetxt(log, columns, delimiter=",", header="time,q1,q2,tau1,tau2", comments="", fmt="%.7g")
    return robot, log


VISCOUS, COULOMB = np.array([0.4, 0.2]), np.array([0.8, 0.3])
URDF = """<robot name="arm"><link name="base"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.3"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="4" effort="60"/></joint>
<link name="upper"><inertial><origin xyz="0 0 0.2"/><mass value="3"/>
<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.01"/></inertial>
<visual><origin xyz="0 0 0.2"/><geometry><box size="0.08 0.08 0.4"/></geometry></visual></link>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/>
<axis xyz="0 1 0"/><limit lower="-2.5" upper="2.5" velocity="4" effort="40"/></joint>
<link name="lower"><inertial><origin xyz="0 0 0.15"/><mass value="1.5"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.004"/></inertial>
<visual><origin xyz="0 0 0.15"/><geometry><cylinder radius="0.04" length="0.3"/></geometry></visual></link></robot>
"""
