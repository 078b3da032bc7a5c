"""An event for Isaac Lab that gives every environment one drawn robot: `dynid export out --draws 200 -o randomised`.

    identified = EventTermCfg(func=apply_draw, mode="startup", params={"path": "randomised/draws.npz"})

Values of one draw belong together, so one row of the table is drawn for each environment. Joint friction is a torque
in Isaac Sim 5.0 and later; before, leave out its three lines at the end.
"""

from __future__ import annotations

import numpy as np
import torch

INERTIA_ORDER = [0, 3, 4, 3, 1, 5, 4, 5, 2]  # XX YY ZZ XY XZ YZ of the table as a matrix, row by row


def apply_draw(env, env_ids, path, entity="robot"):
    """Set masses, inertias, armature and friction of the robot in some environments from a table of draws."""
    table, robot = np.load(path), env.scene[entity]
    if env_ids is None:
        env_ids = torch.arange(env.num_envs, device=env.device)
    rows = torch.randint(len(table["armature"]), (len(env_ids),), device="cpu")
    here, view = env_ids.cpu(), robot.root_physx_view
    if "bodies" in table:  # a table of actuators alone has none
        bodies, _ = robot.find_bodies([str(name) for name in table["bodies"]], preserve_order=True)
        masses, coms, inertias = view.get_masses(), view.get_coms(), view.get_inertias()
        place = (here[:, None], torch.as_tensor(bodies))
        masses[place] = torch.as_tensor(table["mass"], dtype=masses.dtype)[rows]
        inertias[place] = torch.as_tensor(table["inertia"][..., INERTIA_ORDER], dtype=inertias.dtype)[rows]
        pose = coms[place]
        pose[..., :3] = torch.as_tensor(table["com"], dtype=coms.dtype)[rows]
        coms[place] = pose
        view.set_masses(masses, here)
        view.set_coms(coms, here)
        view.set_inertias(inertias, here)
    joints, _ = robot.find_joints([str(name) for name in table["joints"]], preserve_order=True)
    drawn = {name: torch.as_tensor(table[name], dtype=torch.float32)[rows].to(env.device)
             for name in ("armature", "frictionloss", "damping")}
    robot.write_joint_armature_to_sim(drawn["armature"], joint_ids=joints, env_ids=env_ids)
    robot.write_joint_friction_coefficient_to_sim(drawn["frictionloss"], joint_ids=joints, env_ids=env_ids)
    robot.write_joint_dynamic_friction_coefficient_to_sim(drawn["frictionloss"], joint_ids=joints, env_ids=env_ids)
    robot.write_joint_viscous_friction_coefficient_to_sim(drawn["damping"], joint_ids=joints, env_ids=env_ids)
