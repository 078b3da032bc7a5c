"""Errors a user can meet. Each message is one sentence: what was given, where, what to do."""


class DynidError(Exception):
    """The call was wrong: a file, an argument, a name. Exit code 2 at the command line."""

    exit_code = 2


class RobotError(DynidError):
    """A robot description that cannot be used; names the file and the link, joint or row."""


class ModelError(DynidError):
    """A model, term, parameter or array that does not fit; names what and where."""


class RecordingError(DynidError):
    """A log or mapping that cannot be read; names the file and the row, column or joint."""


class NotPossibleError(DynidError):
    """The call was right but the data or the model do not allow it. Exit code 1."""

    exit_code = 1
