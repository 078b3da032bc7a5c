"""The events of examples/ that randomise a robot from a table of draws, on fields of a simulator that is not there."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_scripts import example

BODIES, JOINTS, ENVIRONMENTS, DRAWS = ["upper", "fore"], ["shoulder", "elbow"], 4, 6


class Tensor(np.ndarray):
    """The methods of a tensor that the events use."""

    def cpu(self) -> Tensor:
        return self

    def to(self, device: str) -> Tensor:
        return self


def tensor(values: Any, dtype: Any = None, device: str = "") -> Tensor:
    return np.array(values, dtype=dtype).view(Tensor)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("torch")
    rng = np.random.default_rng(0)
    module.as_tensor, module.float32 = tensor, np.float32  # type: ignore[attr-defined]
    module.arange = lambda count, device="": tensor(np.arange(count))  # type: ignore[attr-defined]
    module.randint = (  # type: ignore[attr-defined]
        lambda high, size, device="": tensor(rng.integers(high, size=size)))
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def table(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    found: dict[str, Any] = {"bodies": np.array(BODIES), "joints": np.array(JOINTS)}
    for name, more in (("mass", ()), ("com", (3,)), ("iquat", (4,)), ("diaginertia", (3,)), ("inertia", (6,))):
        found[name] = rng.random((DRAWS, 2, *more))
    for name in ("armature", "damping", "frictionloss"):
        found[name] = rng.random((DRAWS, 2))
    np.savez(tmp_path / "draws.npz", **found)
    return found


def names_in_order(names: list[str]) -> Any:
    def find(wanted: list[str], preserve_order: bool) -> tuple[list[int], list[str]]:
        assert preserve_order
        return [names.index(one) for one in wanted], wanted
    return find


def draw_of(masses: Any, table: dict[str, Any]) -> int:
    """The draw that an environment has; its values come from one row of the table."""
    found = [k for k in range(DRAWS) if np.allclose(table["mass"][k], masses)]
    assert len(found) == 1
    return found[0]


def test_every_environment_of_mjlab_gets_one_draw(tmp_path, torch, table, monkeypatch):
    manager = types.ModuleType("mjlab.managers.event_manager")
    fields: list[str] = []
    manager.RecomputeLevel = types.SimpleNamespace(set_const=3)

    def requires_model_fields(*names: str, recompute: int) -> Any:
        fields.extend(names)
        assert recompute == 3  # of masses: all that MuJoCo derives from them
        return lambda function: function

    manager.requires_model_fields = requires_model_fields
    for name in ("mjlab", "mjlab.managers"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "mjlab.managers.event_manager", manager)
    model = types.SimpleNamespace(
        body_mass=np.zeros((ENVIRONMENTS, 5)), body_ipos=np.zeros((ENVIRONMENTS, 5, 3)),
        body_iquat=np.zeros((ENVIRONMENTS, 5, 4)), body_inertia=np.zeros((ENVIRONMENTS, 5, 3)),
        dof_armature=np.zeros((ENVIRONMENTS, 9)), dof_damping=np.zeros((ENVIRONMENTS, 9)),
        dof_frictionloss=np.zeros((ENVIRONMENTS, 9)))
    robot = types.SimpleNamespace(find_bodies=names_in_order(["trunk", "fore", "upper"]),
                                  find_joints=names_in_order(["elbow", "shoulder"]),
                                  indexing=types.SimpleNamespace(body_ids=np.array([1, 2, 3]),
                                                                 joint_v_adr=np.array([6, 7])))
    env = types.SimpleNamespace(scene={"robot": robot}, sim=types.SimpleNamespace(model=model), num_envs=ENVIRONMENTS,
                                device="cpu")
    example("randomise_mjlab").apply_draw(env, None, tmp_path / "draws.npz")
    assert set(fields) == set(vars(model))
    drawn = [draw_of(model.body_mass[e, [3, 2]], table) for e in range(ENVIRONMENTS)]
    assert len(set(drawn)) > 1
    np.testing.assert_array_equal(model.body_ipos[:, [3, 2]], table["com"][drawn])
    np.testing.assert_array_equal(model.body_inertia[:, [3, 2]], table["diaginertia"][drawn])
    np.testing.assert_array_equal(model.body_iquat[:, [3, 2]], table["iquat"][drawn])
    np.testing.assert_array_equal(model.dof_frictionloss[:, [7, 6]], table["frictionloss"][drawn])
    assert not model.body_mass[:, [0, 1, 4]].any() and not model.dof_armature[:, [0, 5, 8]].any()


def test_every_environment_of_isaac_lab_gets_one_draw(tmp_path, torch, table):
    now = {"masses": tensor(np.zeros((ENVIRONMENTS, 3))), "coms": tensor(np.ones((ENVIRONMENTS, 3, 7))),
           "inertias": tensor(np.zeros((ENVIRONMENTS, 3, 9)))}
    written: dict[str, Any] = {}
    view = types.SimpleNamespace(**{f"get_{name}": lambda name=name: now[name].copy() for name in now},
                                 **{f"set_{name}": lambda values, ids, name=name: now.update({name: values})
                                    for name in now})
    robot = types.SimpleNamespace(
        root_physx_view=view, find_bodies=names_in_order(["trunk", "fore", "upper"]),
        find_joints=names_in_order(["elbow", "shoulder"]),
        **{f"write_joint_{name}_to_sim": lambda values, joint_ids, env_ids, name=name: written.update(
            {name: (values, joint_ids)}) for name in ("armature", "friction_coefficient",
                                                      "dynamic_friction_coefficient",
                                                      "viscous_friction_coefficient")})
    env = types.SimpleNamespace(scene={"robot": robot}, num_envs=ENVIRONMENTS, device="cpu")
    example("randomise_isaaclab").apply_draw(env, None, tmp_path / "draws.npz")
    drawn = [draw_of(now["masses"][e, [2, 1]], table) for e in range(ENVIRONMENTS)]
    np.testing.assert_allclose(now["coms"][:, [2, 1], :3], table["com"][drawn])
    assert np.all(now["coms"][..., 3:] == 1.0) and not now["masses"][:, 0].any()
    xx, yy, zz, xy, xz, yz = np.moveaxis(table["inertia"][drawn], -1, 0)
    matrix = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1)
    np.testing.assert_allclose(now["inertias"][:, [2, 1]], matrix)
    for name, column in (("armature", "armature"), ("friction_coefficient", "frictionloss"),
                         ("dynamic_friction_coefficient", "frictionloss"),
                         ("viscous_friction_coefficient", "damping")):
        np.testing.assert_allclose(written[name][0], table[column][drawn], rtol=1e-6)
        assert written[name][1] == [1, 0]
