"""Base parameters as combinations of standard parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import number


def gather(data: ReportData) -> Mapping[str, Any]:
    base = data.estimate.base
    matrix, names = base.matrix, base.parameters.names
    grouped = [{"name": name, "terms": [{"name": names[c], "sign": "\u2212" if row[c] < 0 else "+",
                                         "factor": "" if abs(row[c]) == 1.0 else number(abs(row[c]), 6)}
                                        for c in [lead, *(c for c in np.flatnonzero(row) if c != lead)]]}
               for name, row, lead in zip(base.names, matrix, base.independent, strict=True)
               if np.count_nonzero(row) > 1]
    alone = [name for name, row in zip(base.names, matrix, strict=True) if np.count_nonzero(row) == 1]
    without = [names[c] for c in np.flatnonzero(~np.any(matrix != 0, axis=0))]
    return {"grouped": grouped, "alone": alone, "without": without, "count": len(base), "of": len(names)}


SECTION = Section("expressions", "Base expressions", gather)
