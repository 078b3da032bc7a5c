"""Cache of compiled templates next to Python's byte code: compiling a template takes longer than rendering it."""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache

from dynid.errors import DynidError
from dynid.files import write_whole


class CompiledTemplates(BytecodeCache):
    """Cache with one file per template. A changed template is compiled again, because its checksum differs. If the
    folder cannot be written, nothing is cached."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            with _path(bucket).open("rb") as file:
                bucket.load_bytecode(file)
        except OSError:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        try:
            with write_whole(_path(bucket), "wb") as file:
                bucket.write_bytecode(file)
        except (DynidError, OSError):
            return


def _path(bucket: Bucket) -> Path:
    return Path(cache_from_source(__file__)).with_name(f"template-{bucket.key}.{sys.implementation.cache_tag}")
