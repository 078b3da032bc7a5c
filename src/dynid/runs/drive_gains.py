"""Estimation of drive gains (torque per motor current) from the logs of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.errors import DynidError, NotPossibleError
from dynid.findings import Finding
from dynid.model import required_robot_model
from dynid.payloads.frames import mounting_frame
from dynid.payloads.known_load import KnownLoad, gains_from_known_load
from dynid.plain import PlainFields
from dynid.progress import ProgressCallback, silent
from dynid.quantities import MASS, check_quantity
from dynid.recording import Recording, Samples
from dynid.recording.drive_gains import DriveGains, gains_from_log
from dynid.recording.log_reading import read
from dynid.recording.mapping import FROM_LOG, KNOWN_LOAD, per_joint
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.runs.logs import LogEntry, LogSettings, log_settings
from dynid.runs.models import first_model
from dynid.runs.settings import PayloadSettings, RunSettings

_CONTRADICTION_STD = 3.0  # standard errors of a difference of gains, above which two methods contradict each other


def known_load(robot: Robot, said: PayloadSettings) -> KnownLoad:
    """Return the known load that a [payloads.NAME] table describes by mass and centre of mass."""
    mass, std = said.mass if isinstance(said.mass, tuple) else (said.mass, 0.0)
    assert mass is not None
    check_quantity(MASS, mass, "the mass of a known load")
    return KnownLoad.from_mass(mounting_frame(robot, said.frame), mass, said.centre or (0.0, 0.0, 0.0), said.inertia,
                               std=std / mass)


def with_drive_gains(settings: RunSettings, robot: Robot, progress: ProgressCallback = silent) -> RunSettings:
    """Return the settings with estimated drive gains as numbers, one set for all logs, if requested."""
    if any(log_settings(log).own.get("drive_gain") in (FROM_LOG, KNOWN_LOAD) for log in settings.logs):
        raise DynidError('drive_gain = "from-log" or "known-load" must be in [log], because the gains apply to all '
                         "logs; move it there from the tables of single logs")
    asked = settings.log.get("drive_gain")
    if asked == FROM_LOG:
        progress("determining drive gains from the controller's targets")
        gains = pooled([gains_from_log(_in_currents(log_settings(log), settings, robot)) for log in settings.logs])
        return settings.model_copy(update={"log": {**settings.log, **gain_table(gains)}})
    if asked != KNOWN_LOAD:
        return settings
    known = {name: said for name, said in settings.payloads.items() if said.known and settings.with_payload(name)}
    if not known:
        raise DynidError('drive_gain = "known-load" needs a log whose payload = "NAME" has a [payloads.NAME] table '
                         "with mass and centre", code="no-known-load")
    progress("determining drive gains from a known load")
    name, said = next(iter(known.items()))
    model = required_robot_model(first_model(settings, robot), 'drive_gain = "known-load"')
    gains = gains_from_known_load(model, _currents(settings.unloaded, settings, robot),
                                  _currents(settings.with_payload(name), settings, robot), known_load(robot, said),
                                  settings.known)
    if not gains.identified.any():
        raise NotPossibleError(f"payload '{name}' does not determine any drive gain: "
                               f"{next(iter(gains.reasons.values()))}")
    return settings.model_copy(update={"log": {**settings.log, **gain_table(gains)}})


def pooled(gains: Sequence[DriveGains]) -> DriveGains:
    """Return one set of gains from several logs of a robot, weighted by inverse variance.

    The covariance is at least that of the best determined gains, plus the scatter between the logs, which may be
    correlated between joints: a warmer robot has lower gains in all joints.
    """
    values, std = (np.array([getattr(one, which) for one in gains]) for which in ("values", "std"))
    known = np.isfinite(std)
    weight = np.where(known, 1.0 / np.where(known, std, 1.0) ** 2, 0.0)
    total = weight.sum(axis=0)
    has_value = total > 0
    mean = np.where(has_value, (weight * np.where(known, values, 0.0)).sum(axis=0) / np.where(has_value, total, 1.0),
                    np.nan)
    # Relative scatter of the gains, scaled so that the sum of squares is the weighted variance.
    scatter = np.sqrt(weight / np.where(has_value, total, 1.0)) * np.where(known, values / mean - 1.0, 0.0)
    least = np.where(has_value, std.min(axis=0) / np.where(has_value, np.abs(mean), 1.0), 0.0)
    covariance = np.diag(least ** 2) + scatter.T @ scatter
    spread = np.where(has_value, np.sqrt(np.diag(covariance)) * np.abs(mean), np.inf)
    reasons = {name: gains[0].reasons.get(name, "") or next(
        (one.reasons[name] for one in gains if name in one.reasons), "the data of the logs give no finite gain")
               for name, yes in zip(gains[0].joints, has_value, strict=True) if not yes}
    return DriveGains(gains[0].joints, mean, spread, gains[0].method, reasons, covariance)


def gain_table(gains: DriveGains) -> dict[str, Any]:
    """Return drive gains as settings of a [log] table, with covariance; joints without gain are not measured."""
    table: dict[str, Any] = {
        "drive_gain": {name: float(value) if yes else 1.0 for name, value, yes in
                       zip(gains.joints, gains.values, gains.identified, strict=True)},
        "gain_std": [[float(f"{x:.6g}") for x in row] for row in gains.relative_covariance]}
    silent = [name for name, yes in zip(gains.joints, gains.identified, strict=True) if not yes]
    return {**table, "unmeasured": silent} if silent else table


def with_own_gains(recording: Recording, samples: Samples, settings: RunSettings) -> Samples:
    """Return samples with the covariance of their drive gains, which were estimated from other logs.

    If the log has the controller's target torques and currents, they give gains of this log alone. Their difference d
    from the given gains has the variance of both estimates and twice that of a gain between logs, which is added to
    the covariance as half of d d', less the share of the estimates in d.
    """
    if samples.gain_covariance is None or isinstance(settings.log.get("drive_gain"), str | None) \
            or recording.target_torque is None or recording.target_current is None:
        return samples
    own, known = gains_from_log(recording), np.diag(samples.gain_covariance) > 0.0
    # The given gains have converted the target currents to torques, so that these gains are relative to them.
    used = own.identified & known
    scatter = np.where(used, own.values - 1.0, 0.0)
    of_estimates = np.sum(np.diag(samples.gain_covariance)[used]) + np.sum(own.relative_std[used] ** 2)
    excess = max(0.0, 1.0 - of_estimates / max(float(scatter @ scatter), 1e-300))
    return replace(samples, gain_covariance=samples.gain_covariance + 0.5 * excess * np.outer(scatter, scatter))


def _currents(logs: Sequence[LogEntry], settings: RunSettings, robot: Robot) -> list[Samples]:
    """Return logs with motor currents, prepared like those of the run."""
    found, chosen = [], Preparation.from_settings(settings.prepare, "[prepare]")
    for one in logs:
        log = log_settings(one)
        recording = read(log.files, log.mapping(settings.log), robot, at_once=settings.stream_rows)
        samples = prepare(replace(recording, unscaled=False), chosen)
        chosen = samples.preparation
        found.append(samples)
    return found


@dataclass(frozen=True, eq=False)
class FoundGains(PlainFields):
    """Drive gains by every available method, the most accurate first, and findings on contradictions."""

    gains: tuple[DriveGains, ...]
    findings: tuple[Finding, ...] = ()


def find_gains(settings: RunSettings, robot: Robot, load: PayloadSettings | None = None,
               loaded: Sequence[str] = (), progress: ProgressCallback = silent) -> FoundGains:
    """Return drive gains of logs with motor currents by every available method: from the controller's targets, with a
    known load if such logs are given, and the given numbers for comparison."""
    found: list[DriveGains] = []
    recordings = [_in_currents(log_settings(log), settings, robot) for log in settings.logs]
    if loaded:
        if load is None or not load.known:
            raise DynidError("logs with a known load need its mass and its centre of mass",
                             "add --mass KG --centre X,Y,Z")
        progress("determining drive gains from a known load")
        model = required_robot_model(first_model(settings, robot), "a drive gain from a known load")
        carrying = [_in_currents(LogSettings(file=log), settings, robot) for log in loaded]
        chosen = Preparation.from_settings(settings.prepare, "[prepare]")
        samples = [prepare(one, chosen) for one in (*recordings, *carrying)]
        found.append(gains_from_known_load(model, samples[:len(recordings)], samples[len(recordings):],
                                           known_load(robot, load), settings.known))
    targets = [one for one in recordings if one.target_torque is not None and one.target_current is not None]
    if targets:
        found.append(pooled([gains_from_log(one) for one in targets]))
    if not found:
        raise DynidError("these logs have no target torque and target current, and no log with a known load was given",
                         "map target_torque and target_current (--set 'log.target_torque=[...]'), or give --loaded, "
                         "--mass and --centre", code="no-targets")
    given = settings.log.get("drive_gain")
    if given is not None and not isinstance(given, str):
        numbers = np.array(per_joint(given, settings.log.get("joints") or robot.joint_names, robot.dof, "drive_gain",
                                     "[log]"), dtype=float)
        found = [replace(one, values=one.values * numbers, std=one.std * np.abs(numbers)) for one in found]
        found.append(DriveGains(robot.joint_names, numbers, np.zeros(robot.dof), "as given", {}))
    return FoundGains(tuple(found), tuple(_contradictions(found)))


def _in_currents(log: LogSettings, settings: RunSettings, robot: Robot) -> Recording:
    table: Mapping[str, Any] = settings.log
    if "current" in table and table.get("drive_gain") in (None, FROM_LOG, KNOWN_LOAD):
        table = {**table, "drive_gain": 1.0}
    return replace(read(log.files, log.mapping(table), robot), unscaled=False)


def _contradictions(gains: Sequence[DriveGains]) -> list[Finding]:
    """Return findings on two methods whose gains differ significantly."""
    found = []
    for k, one in enumerate(gains):
        for other in gains[k + 1:]:
            both = one.identified & other.identified
            scatter = np.abs(one.values - other.values) / np.maximum(np.hypot(one.std, other.std), 1e-300)
            wrong = np.flatnonzero(both & (scatter > _CONTRADICTION_STD))
            if len(wrong):
                names = tuple(one.joints[j] for j in wrong)
                ratio = tuple(float(one.values[j] / other.values[j]) for j in wrong)
                found.append(Finding(
                    "drive-gains-differ", "problem", "warning",
                    f"Drive gains {one.method} and {other.method} differ by more than their standard deviations: "
                    + ", ".join(f"{name} {x:.3f} times" for name, x in zip(names, ratio, strict=True)) + ".",
                    "drive gains differ", joints=names, evidence={"ratio": ratio}))
    return found
