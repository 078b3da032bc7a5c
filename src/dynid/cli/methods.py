"""`dynid methods`: the methods by the names users know from the literature."""

from __future__ import annotations

from dynid.cli.output import Json, console, print_json, table


def command(json: Json = False) -> None:
    """List the methods of identification."""
    from dynid.estimate import methods

    titles = {name: one.title for name, one in methods().items()}
    if json:
        print_json({"methods": titles})
    else:
        console().print(table(["method", "is"], list(titles.items())))
