"""How a case is named: HPL by N, grid, block size and code, any other application by its label and by what varies."""

from collections.abc import Sequence
from typing import Any

from lepaute.kit.later import pandas
from lepaute.kit.text import ranks_text
from lepaute.simulate import Application
from lepaute.simulate.apps.hpl import Hpl
from lepaute.simulate.prediction.document import cell_of

_OF_HPL = ("n", "nb", "p", "q")


def label_of(application: Application) -> str:
    if isinstance(application, Hpl):
        return f"N = {application.n}, {application.p}x{application.q}"
    return application.label


def columns_of_run(application: Application) -> dict[str, Any]:
    """n, nb, p and q of HPL, the label of any other application."""
    if isinstance(application, Hpl):
        return {name: getattr(application, name) for name in _OF_HPL}
    return {"label": application.label}


def columns_of_cases(applications: Sequence[Application]) -> list[dict[str, Any]]:
    """Cases: n, nb, p, q, variant (HPL's code) and flop_count; or label, ranks and varied, the parameters that differ
    between the cases, as "grid 2x1x1"."""
    parameters = [application.parameters() for application in applications]
    varied = [name for name in parameters[0] if any(values[name] != parameters[0][name] for values in parameters)]
    rows = []
    for application, values in zip(applications, parameters, strict=True):
        row = columns_of_run(application)
        if isinstance(application, Hpl):
            row |= {"variant": application.variant, "flop_count": application.flop_count}
        else:
            told = ", ".join(f"{name} {cell_of(values[name])}" for name in varied)
            row |= {"ranks": application.ranks, "varied": told or ranks_text(application.ranks)}
        rows.append(row)
    return rows


def varied_columns(table: "pandas.DataFrame") -> dict[str, str]:
    """Columns that tell cases of one N and grid apart, and their heads: block size, HPL's code of the algorithms."""
    columns = (("nb", "NB"), ("variant", "T/V")) if "n" in table else ()
    return {column: head for column, head in columns if table[column].nunique() > 1}


def names_of_cases(table: "pandas.DataFrame") -> list[dict[str, str]]:
    """What a table shows of each case, by the head of its column."""
    if "n" not in table:
        return [{"case": text} for text in table["varied"]]
    varied = varied_columns(table)
    return [
        {
            "N": str(row["n"]),
            **{head: str(row[column]) for column, head in varied.items()},
            "grid": f"{row['p']}x{row['q']}",
        }
        for row in table.to_dict("records")
    ]


def panels_of(table: "pandas.DataFrame") -> list[str]:
    """For each case, the title of the cases that it is drawn among: those of its grid, or of as many ranks."""
    if "n" in table:
        return [f"grid {p} × {q}" for p, q in zip(table["p"], table["q"], strict=True)]
    return [ranks_text(ranks) for ranks in table["ranks"]]
