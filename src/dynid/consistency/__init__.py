"""What is physically possible: the set, tests with proof, the nearest possible parameters, constrained regression."""

from dynid.consistency.consistency import Consistency, Violation
from dynid.consistency.feasibility import Certificate, Feasibility, nearest, test
from dynid.consistency.fit import Fit, fit
from dynid.consistency.limits import Box, Ellipsoid, Hull, MassLimit, limits_from_shapes, limits_from_tables

__all__ = ["Box", "Certificate", "Consistency", "Ellipsoid", "Feasibility", "Fit", "Hull", "MassLimit", "Violation",
           "fit", "limits_from_shapes", "limits_from_tables", "nearest", "test"]
