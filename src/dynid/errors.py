"""Errors for users. Each message is one sentence that states the input, its location and a remedy."""

import difflib
from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import Any, TypeVar

Name = TypeVar("Name", bound=str)

MAX_REASON_LENGTH = 2000  # characters of a reason, since the input may be of any length


class DynidError(Exception):
    """A wrong call: a file, an argument or a name. Exit code 2 on the command line.

    Attributes:
        reason: what is wrong.
        advice: what to do; the end of the sentence.
        code: stable code of the reason in kebab-case. Default: the code of the class.
        where: setting that the error concerns, such as log.torque, or None.
    """

    exit_code = 2
    code = "bad-call"

    def __init__(self, reason: str, advice: str = "", code: str | None = None, *, where: str | None = None) -> None:
        half = MAX_REASON_LENGTH // 2
        reason = reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[:half]} ... {reason[-half:]}"
        super().__init__(f"{reason}; {advice}" if advice else reason)
        self.reason, self.advice, self.where = reason, advice, where
        if code is not None:
            self.code = code


class RobotError(DynidError):
    """A robot description that cannot be used; the message names the file and the link, joint or row."""

    code = "bad-robot"


class ModelError(DynidError):
    """A model, term, parameter or array that does not fit; the message names it and its location."""

    code = "bad-model"


class RecordingError(DynidError):
    """A log or mapping that cannot be read; the message names the file and the row, column or joint."""

    code = "bad-recording"


class NotPossibleError(DynidError):
    """The call was correct, but the data or the model do not allow the requested computation. Exit code 1."""

    exit_code = 1
    code = "not-possible"


def require_type(value: Any, kinds: type | tuple[type, ...], function: str, example: str) -> None:
    """Raise an error if an argument of a public function, or an item of a list of arguments, has a wrong type.

    Args:
        value: the argument.
        kinds: allowed types.
        function: name of the function in the message.
        example: a correct call, for the message.

    Raises:
        ModelError: with code "wrong-type"; the sentence shows a call that works.
    """
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    for one in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(one, wanted):
            names = dict.fromkeys("None" if kind is type(None) else kind.__name__ for kind in wanted)
            raise ModelError(f"{function} takes {' or '.join(names)}, not "
                             f"{type(one).__name__}", f"call {example}", "wrong-type")


def required(reason: str, advice: str) -> Callable[[], Any]:
    """Return a default factory for required fields of a dataclass: a call without them raises an error in one sentence.

    Python's own error would list the missing names, without a call that works.
    """
    def refuse() -> Any:
        raise ModelError(reason, advice, "wrong-type")
    return refuse


def did_you_mean(name: str, known: Iterable[str], listed: str = "there are") -> str:
    """Return the end of a sentence on an unknown name: the most similar known name, or else a list of all."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"{listed} {', '.join(known)}"


def known_name(name: str, known: Collection[Name], what: str) -> Name:
    """Return a given name if it is a known one; raise an error that lists similar names otherwise."""
    if name not in known:
        raise DynidError(f"there is no {what} '{name}'; {did_you_mean(name, known)}")
    return next(one for one in known if one == name)


def optional_package(name: str, requirement: str) -> Any:
    """Return a module of an optional package.

    Raises:
        DynidError: the package is not installed (code "missing-package"); the message names the requirement to install,
            such as dynid[plot].
    """
    try:
        return import_module(name)
    except ImportError:
        raise DynidError(f"this function needs the package {name.partition('.')[0]}, which is not installed",
                         f"run pip install '{requirement}'", code="missing-package") from None
