"""Write the results of a fleet to a folder: pages, numbers, and the fleet as the prior of a new robot.

    fleet.html, robot-NAME.html     the pages
    fleet.json                      everything that `dynid fleet --json` prints
    logs.json                       the manifest: every log with file, hash, rows, span, robot, date
    history.json                    each robot's parameters from log to log, with their standard deviations
    fleet.toml                      the settings, with which the comparison is repeated or updated
    parameters.toml, estimate.npz, run.toml     the fleet as a result of its own: `dynid watch --prior FOLDER`
    folds/                          the compressed logs, which an update does not read again
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.estimate.estimate import Diagnostics
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.files import try_folder, write_json
from dynid.fleet.pages import FLEET, FLEET_ROBOT, FleetPage, RobotPage, page_names
from dynid.fleet.pooling import Pooling
from dynid.fleet.result import FleetResult
from dynid.model import LinearModel
from dynid.plain import plain
from dynid.regression import Regression
from dynid.report import write_page
from dynid.runs.result_folder import MANIFEST, new_result
from dynid.runs.results import ESTIMATE, PARAMETERS, SETTINGS
from dynid.runs.toml import dumps
from dynid.version import __version__

PAGE, FACTS, LOGS, HISTORY, FLEET_FILE, FOLDS = ("fleet.html", "fleet.json", "logs.json", "history.json", "fleet.toml",
                                                 "folds")


def check_fleet_output(folder: Path, replace: bool) -> None:
    """Raise an error if a result cannot be written into a folder; replace: whether a result there may be replaced."""
    try_folder(folder)
    if not replace and (folder / MANIFEST).exists():
        raise DynidError(f"{folder} already contains a result; add --update to add new logs to that result, or choose "
                         "another folder", code="folder-in-use")


def save_fleet(result: FleetResult, folder: Path, command: str = "") -> dict[str, str]:
    """Write all results into a folder atomically; return the path of each file by its kind.

    Compressed logs of a store inside the folder are kept.
    """
    folder = Path(folder)
    settings = result.settings.moved(Path(), folder).as_toml(f"Repeat with: dynid fleet {FLEET_FILE} -o FOLDER")
    with new_result(folder) as new:
        facts = result.to_dict()
        write_json(new / FACTS, facts)
        write_json(new / LOGS, {"logs": facts["logs"], "failures": facts["failures"], "copies": facts["copies"]})
        write_json(new / HISTORY, history(result))
        (new / FLEET_FILE).write_text(settings, encoding="utf-8", newline="")
        _save_prior(result, new, folder)
        write_page(FLEET, FleetPage(result, settings, command), new / PAGE)
        for k, name in enumerate(page_names(result).values()):
            write_page(FLEET_ROBOT, RobotPage(result, k), new / name)
    named = {"page": PAGE, "facts": FACTS, "logs": LOGS, "history": HISTORY, "settings": FLEET_FILE, "prior": ESTIMATE}
    return {what: str(folder / name) for what, name in named.items()}


def history(result: FleetResult) -> dict[str, Any]:
    """Return the estimates of each robot from each log: date, source, values and standard errors of the base
    parameters, None for parameters that the log does not determine."""
    return {"parameters": list(result.out.pooling.base.names), "robots": {
        logs.robot: [{"date": entry.date, "source": entry.source, "values": plain(logs.values[k]),
                      "std": plain(logs.std[k])} for k, entry in enumerate(logs.entries)] for logs in result.logs}}


def _save_prior(result: FleetResult, new: Path, folder: Path) -> None:
    pooling = result.out.pooling
    whole = result.robots[0].regression
    total = Regression.from_blocks(whole.base, [robot.regression.joined(1).blocks[0] for robot in result.robots],
                                   whole.joints)
    type_estimate(pooling, result.model, total).save(new / ESTIMATE)
    sources = tuple(entry.source for entry in result.folded.entries)
    own = result.run or result.settings.run_settings(sources, result.folded.preparation.as_table())
    run = own.model_copy(update={"logs": sources}).moved(Path(), folder)
    (new / SETTINGS).write_text(run.as_toml("The type of a fleet, as the prior of a new robot."), encoding="utf-8",
                                newline="")
    std = np.sqrt(np.maximum(np.diag(pooling.prior), 0.0))
    base = {name: {"value": float(pooling.mean[k]), "std": float(std[k]), "spread": float(pooling.spread[k]),
                   "unit": pooling.base.units[k], "expression": pooling.base.expressions[k]}
            for k, name in enumerate(pooling.base.names)}
    head = {"result": {"dynid": __version__, "method": "fleet", "robot": result.robot.name,
                       "robots": len(result.robots)}, "base": base}
    (new / PARAMETERS).write_text("# Mean of a fleet; std: of a robot drawn from it, SI units.\n" + dumps(head),
                                  encoding="utf-8", newline="")


def type_estimate(pooling: Pooling, model: LinearModel, regression: Regression) -> Estimate:
    """Return the fleet's mean as an estimate whose covariance includes the spread between robots.

    The estimate can be the prior of `dynid watch --prior` and `Online`. regression: compressed regression of all
    robots, for the diagnostics of the fit.
    """
    variances = np.diag(pooling.prior)
    identified = np.isfinite(variances) & (variances < (1e2 * pooling.size) ** 2)
    facts = Diagnostics.from_fit(regression, pooling.mean, rank=int(identified.sum()), condition=1.0)
    return Estimate("fleet", model, pooling.base, pooling.mean, identified,
                    OnDemand.known(Uncertainty(pooling.prior, "posterior")), diagnostics=facts)
