"""Cone programme for the same base values, which decides in milliseconds whether any consistent robot has them."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from dynid.consistency import Box, Consistency, MassLimit, nearest
from dynid.consistency.limits import CentreLimit
from dynid.errors import NotPossibleError
from dynid.extraction.base_values import BaseValues
from dynid.extraction.bounds import Bounds
from dynid.extraction.extraction import ConeAnswer
from dynid.regression import BaseParameters

INSIDE = 1e-5  # kg, kg m^2: the nearest robot stands so far from the border, so that a search finds room around it


def cone_answer(given: BaseValues, bounds: Bounds, *, margin: float = 0.0, boxes: bool = True) -> ConeAnswer:
    """Return whether any robot has the base values with masses and centres inside their bounds, and the nearest one.

    Bounds of inertias are omitted: upper ones and products about a centre of mass are not convex. boxes: with bounds of
    masses and centres of mass; without, any robot is allowed.
    """
    start = time.perf_counter()
    parameters = given.model.parameters
    bare = Consistency(parameters)
    centres, masses = dict[str, CentreLimit](), tuple[MassLimit, ...]()
    if boxes:
        # Contours that a box of bounds does not hold already are left to the search where they are not convex hulls.
        centres = {body: Box(low[1:4], high[1:4]) for body, low, high in
                   zip(bare.bodies, bounds.low, bounds.high, strict=True)}
        masses = tuple(MassLimit(max(float(low[0]), 0.0), float(high[0]), (body,)) for body, low, high in
                       zip(bare.bodies, bounds.low, bounds.high, strict=True))
        if bounds.mass is not None:
            masses = (*masses, MassLimit(*bounds.mass))
    known = {parameters.names[k]: float(given.known[k]) for k in np.flatnonzero(~np.isnan(given.known))}
    consistency = replace(bare, margin=margin, centres=centres, masses=masses, known=known)
    independent = np.array([int(np.flatnonzero(row)[0]) for row in given.matrix], dtype=np.int64)
    base = BaseParameters(parameters, independent, given.matrix)
    try:
        found = nearest(consistency, given.values, base)
    except NotPossibleError as error:
        return ConeAnswer(False, np.inf, None, time.perf_counter() - start, str(error))
    why = "" if found.possible else ("no robot within these bounds has the given base values: the nearest differs by "
                                     f"{found.distance:.3g}, because of {'; '.join(found.reasons[:3])}")
    return ConeAnswer(found.possible, found.distance, found.theta, time.perf_counter() - start, why)
