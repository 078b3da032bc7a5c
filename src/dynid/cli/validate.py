"""`dynid validate`: an earlier result on other logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.identify import Horizon, NoSimulation
from dynid.cli.output import Json, console, print_json, progress


def command(
    result: Annotated[Path, typer.Argument(metavar="RESULT", show_default=False,
                                           help="Folder of an earlier `dynid identify -o`.")],
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", show_default=False, help="Logs to predict.")],
    mapping: Annotated[Path | None, typer.Option(help="TOML file with a log table, if these logs are written "
                                                      "otherwise than those identified from.")] = None,
    no_simulation: NoSimulation = False,
    horizon: Horizon = None,
    json: Json = False,
) -> None:
    """Predict the torques of other logs with an earlier result, simulate their motion, and say how well."""
    from dynid.cli.identify import error_table, mapping_table, show_simulations, simulation_table
    from dynid.recording.preparation import Preparation
    from dynid.recording.prepare import prepare
    from dynid.runs import RunSettings, make_model
    from dynid.runs.results import load
    from dynid.runs.run import read_log, simulated
    from dynid.validate import reconstruct

    with progress("validate") as tell:
        tell("reading the result")
        estimate, settings = load(result)
        if mapping is not None:
            settings = settings.model_copy(update={"log": mapping_table(mapping)})
        said = {name: value for name, value in simulation_table(no_simulation, horizon).items() if value is not None}
        settings = RunSettings.of({**settings.model_dump(), "simulation": {**settings.simulation.model_dump(), **said}},
                                  str(result))
        robot = make_model(settings).robot
        chosen, fits, recordings = Preparation.of(settings.prepare).elsewhere(), [], []
        for log in logs:
            tell(f"predicting {Path(log).name}")
            recordings.append(read_log(log, settings, robot))
            fits.append(reconstruct(estimate, prepare(recordings[-1], chosen)))
        logs_of_fits = [(fit.samples, recording) for fit, recording in zip(fits, recordings, strict=True)]
        simulations = simulated(estimate, settings, logs_of_fits, tell)
    if json:
        print_json({"result": str(result), "method": estimate.method, "robot": robot.name,
                    "validation": [fit.to_dict() for fit in fits],
                    "simulation": [one.to_dict() for one in simulations]})
        return
    console().print(error_table({Path(fit.source).name: fit for fit in fits}, robot.joint_names))
    show_simulations(simulations, robot.joint_names)
