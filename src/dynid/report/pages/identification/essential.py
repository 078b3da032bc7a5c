"""Essential parameters: removed parameters in order, and the resulting error on unseen data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Section
from dynid.report.words import count, number

_RULES = {
    "standard-error": "the parameter of largest relative standard error, one after the other, while it is above {0} %",
    "ratio": "the parameter of largest relative standard error, one after the other, while it is above {0} times the "
             "smallest",
    "f-test": "the parameter of largest relative standard error, one after the other, as long as an F-test allows it",
    "smallest": "all parameters at once whose relative standard error is above {0} times the smallest",
    "r": "all parameters whose independent contribution to the torque, the diagonal of R, is below {0} % of the "
         "largest",
    "singular": "as many parameters as there are singular values of the regressor below {0} % of the largest"}


def gather(data: ReportData) -> Mapping[str, Any] | None:
    found = data.essential
    if found is None:
        return None
    rows = [{"name": one.name, "relative": number(one.relative_std, 3) if np.isfinite(one.relative_std) else "",
             "statistic": number(one.statistic, 3) if np.isfinite(one.relative_std) else "not excited"}
            for one in found.removed]
    errors = [{"of": "fit", "before": number(found.error_before, 4), "after": number(found.error_after, 4)}]
    if found.unseen is not None:
        errors.append({"of": "blocks of time not used for selection and fit", "before": number(found.unseen[0], 4),
                       "after": number(found.unseen[1], 4)})
    errors += [{"of": f"validation on {data.log_name(one.source)}", "before": number(before, 4),
                "after": number(one.relative_error, 4)}
               for one, before in zip(data.validations, data.essential_on_others, strict=True)]
    return {"rule": _RULES[found.criterion].format(number(found.threshold, 3)), "rows": rows, "errors": errors,
            "kept": count(len(found.kept), "parameter"), "of": len(found.kept) + len(found.removed)}


SECTION = Section("essential", "Essential parameters", gather)
