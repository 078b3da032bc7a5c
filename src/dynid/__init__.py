"""dynid identifies the dynamic model of a robot from its own motion.

Every name below is loaded when it is first used, so ``import dynid`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module that defines it. The block below says the same to type checkers.
_MODULES = {
    "DynidError": "dynid.errors",
    "ModelError": "dynid.errors",
    "NotPossibleError": "dynid.errors",
    "Recording": "dynid.recording",
    "RecordingError": "dynid.errors",
    "Robot": "dynid.robot",
    "RobotError": "dynid.errors",
    "Samples": "dynid.recording",
}

if TYPE_CHECKING:
    from dynid.errors import DynidError as DynidError
    from dynid.errors import ModelError as ModelError
    from dynid.errors import NotPossibleError as NotPossibleError
    from dynid.errors import RecordingError as RecordingError
    from dynid.errors import RobotError as RobotError
    from dynid.recording import Recording as Recording
    from dynid.recording import Samples as Samples
    from dynid.robot import Robot as Robot

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'dynid' has no attribute '{name}'")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
