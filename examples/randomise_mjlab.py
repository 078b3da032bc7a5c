"""An event for mjlab that gives every environment one drawn robot: `dynid export out --draws 200 -o randomised`.

    events = {"identified": EventTermCfg(func=apply_draw, mode="startup", params={"path": "randomised/draws.npz"})}

Values of one draw belong together, so one row of the table is drawn for each environment.
"""

from __future__ import annotations

import numpy as np
import torch
from mjlab.managers.event_manager import RecomputeLevel, requires_model_fields

OF_BODIES = {"body_mass": "mass", "body_ipos": "com", "body_iquat": "iquat", "body_inertia": "diaginertia"}
OF_JOINTS = {"dof_armature": "armature", "dof_damping": "damping", "dof_frictionloss": "frictionloss"}


@requires_model_fields(*OF_BODIES, *OF_JOINTS, recompute=RecomputeLevel.set_const)
def apply_draw(env, env_ids, path, entity="robot"):
    """Set masses, inertias, armature and friction of the robot in some environments from a table of draws."""
    table, robot, model = np.load(path), env.scene[entity], env.sim.model
    if env_ids is None:
        env_ids = torch.arange(env.num_envs, device=env.device)
    rows = torch.randint(len(table["armature"]), (len(env_ids),), device=env.device)
    places = {}
    if "bodies" in table:  # a table of actuators alone has none
        found, _ = robot.find_bodies([str(name) for name in table["bodies"]], preserve_order=True)
        places |= dict.fromkeys(OF_BODIES, robot.indexing.body_ids[found])
    found, _ = robot.find_joints([str(name) for name in table["joints"]], preserve_order=True)
    places |= dict.fromkeys(OF_JOINTS, robot.indexing.joint_v_adr[found])
    for field, place in places.items():
        values = torch.as_tensor(table[{**OF_BODIES, **OF_JOINTS}[field]], device=env.device)
        getattr(model, field)[env_ids[:, None], place] = values[rows]
