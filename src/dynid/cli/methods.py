"""`dynid methods`: the methods by the names users know from the literature, what they need and give."""

from __future__ import annotations

from dynid.cli.output import Json, console, print_json, table


def command(json: Json = False) -> None:
    """List the methods, what each needs beyond the fold of the data, and what it gives beyond base parameters."""
    from dynid.estimate import methods

    found = methods()
    if json:
        print_json({"methods": {name: {
            "title": one.title, "needs": sorted(one.needs), "gives": sorted(one.gives),
            "depends_on": sorted(one.depends_on), "options": list(one.options)} for name, one in found.items()}})
        return
    console().print(table(["method", "is", "needs", "gives"], [
        (name, one.title, ", ".join(sorted(one.needs - {"exact", "rigid"})), ", ".join(sorted(one.gives)))
        for name, one in found.items()]))
    console().print("needs, beyond the compressed regression: data, all rows again; excerpt, some rows; "
                    "blocks of time; nominal values; free shapes; "
                    "torques as rows, or a row for each of the joints. "
                    "gives, beyond base parameters: theta, all parameters; the shapes found.")
