"""The contract of plugins: each group's own checks on the object that an entry point refers to."""

from __future__ import annotations

from dynid.errors import DynidError
from dynid.plugins import load_plugin
from dynid.recording.mapping import Mapping
from dynid.recording.presets import preset_of
from dynid.robot import Robot
from dynid.validate.contract import check_method
from dynid.validate.contract.checks import ContractError
from dynid.validate.contract.term_checks import check_term


def check_plugin(group: str, name: str) -> None:
    """Run the checks of a group of `dynid.plugins.GROUPS` on one plugin.

    Raises:
        DynidError: it fails; a `ContractError` names the check.
    """
    found = load_plugin(group, name)
    if group == "dynid.robots":
        Robot.load(name)
    elif group == "dynid.terms":
        check_term(found())
    elif group == "dynid.methods":
        check_method(name)
    elif group == "dynid.presets":
        try:
            preset = preset_of(name)
            if preset.refusal is None:
                Mapping(preset=name)
        except ValueError as problem:
            raise ContractError(f"preset '{name}' has settings that no log can be read with: {problem}") from None
        if preset.name != name:
            raise ContractError(f"preset '{name}' is called '{preset.name}' in its own name field")
    elif group == "dynid.report_sections":
        missing = [part for part in ("name", "title", "gather", "template") if not getattr(found, part, None)]
        if missing:
            raise ContractError(f"report section '{name}' has no {' and no '.join(missing)}")
    elif not callable(found):
        raise DynidError(f"'{name}' of the group {group} is a {type(found).__name__}, which cannot be called",
                         code="misnamed-plugin")
