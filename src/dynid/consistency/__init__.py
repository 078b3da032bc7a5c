"""The set of physically consistent parameters: tests with proof, nearest consistent parameters, constrained fits."""

from dynid.consistency.consistency import Consistency, Violation
from dynid.consistency.feasibility import Certificate, Feasibility, nearest, test
from dynid.consistency.fit import Fit, fit
from dynid.consistency.limits import Box, Ellipsoid, Hull, MassLimit, limits_from_shapes, limits_from_tables
from dynid.consistency.sdpa import write_sdpa

__all__ = ["Box", "Certificate", "Consistency", "Ellipsoid", "Feasibility", "Fit", "Hull", "MassLimit", "Violation",
           "fit", "limits_from_shapes", "limits_from_tables", "nearest", "test", "write_sdpa"]
