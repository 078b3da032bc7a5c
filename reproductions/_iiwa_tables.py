"""Ardiani, tables 2.1 to 2.4 and 2.7, with dynid's names of base parameters."""

from __future__ import annotations

from reproductions._printed import NO_ENTRY, PrintedTable, printed


def _numbers(table: PrintedTable, row: str) -> tuple[float, ...]:
    return tuple(map(float, table.rows[row]))


_MODEL, _ESSENTIAL = printed("000", "2.1"), printed("000", "2.3")
# Table 2.1: the controller's model, and relative standard deviations, percent.
CONTROLLER = {row: (_MODEL.value(row, "value"), _MODEL.value(row, "percent")) for row in _MODEL.rows}
# Table 2.2: errors of the commanded torques, percent.
COMMANDED = {name: _numbers(printed("000", "2.2"), row)
             for name, row in (("PTP", "PTP_2"), ("PTP_1", "PTP_1"), ("SPL", "SPL_1"), ("SPL_2", "SPL_2"),
                               ("DS", "DS"))}
# Table 2.3: essential parameters by filtered LS, filtered IV and IV without a filter.
ESSENTIAL: dict[str, tuple[float | None, ...]] = {
    row: tuple(None if _ESSENTIAL.text(row, way) == NO_ENTRY else _ESSENTIAL.value(row, way)
               for way in ("LS", "IV", "NF-IV")) for row in _ESSENTIAL.rows}
# Tables 2.4 and 2.7: errors of the sensed torques on motions that were not fitted, percent. The parameters of Sturz et
# al. are not printed.
SENSED = {motion: {row.removeprefix(f"{motion} "): _numbers(table, row)
                   for table in (printed("000", "2.4"), printed("000", "2.7")) for row in table.rows
                   if row.startswith(motion)} for motion in ("SPL", "DS")}
