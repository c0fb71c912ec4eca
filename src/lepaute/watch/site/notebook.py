"""A notebook for each factor: it makes the pictures of the page anew, from the store and with the public interface."""

import json
from typing import Any

from lepaute.watch.judging.judge import AND
from lepaute.watch.report.models import title_of


def notebook_of(cluster: str, factor: str, node: str) -> str:
    """The text of a notebook (nbformat 4.5) of a factor, or a vector "a & b"; node: the one whose evolution it has.

    The store is that of LEPAUTE_STORE: a page tells nobody where a store is, or its password.
    """
    names = factor.split(AND)
    asked = repr(names[0] if len(names) == 1 else names)
    cells: list[tuple[str, str]] = [
        (
            "markdown",
            f"# {_plain(title_of(factor))}{f' of {_plain(cluster)}' if cluster else ''}\n\n"
            "The pictures of the page of `lepaute watch site`, made anew from the store. Name it below, or set "
            "`LEPAUTE_STORE`.",
        ),
        (
            "code",
            "import os\n\nimport lepaute as lp\n\n"
            'watch = lp.watch.open(os.environ["LEPAUTE_STORE"], create=False)\n'
            f"factor = watch.factor({asked}, cluster={cluster!r})\nfactor",
        ),
        ("markdown", "**All CPUs**: each job, the mean of several, the values."),
        ("code", 'factor.overview("jobs");'),
        ("code", 'if factor.window:\n    factor.overview("means")'),
    ]
    if len(names) == 1:
        cells += [
            ("code", 'factor.overview("values");'),
            ("markdown", "**The last value of each CPU**: how they are distributed, and where they are."),
            ("code", "factor.distribution()\nfactor.spread"),
            ("code", "factor.places();"),
            ("markdown", "**One node** over time, with the interval in which its next job was expected."),
            ("code", f"node = {node!r}\nfactor.evolution(node);"),
            ("code", 'if factor.window:\n    factor.evolution(node, view="means")'),
        ]
    else:
        cells += [
            ("markdown", "**Which coefficient moved**, of the CPUs that stand out."),
            ("code", f"names = {names!r}\nfor each in factor.moved:\n    print(each.node, each.cpu, each.text(names))"),
        ]
    cells += [
        ("markdown", "**The numbers**, to go on from here."),
        ("code", 'factor.rows.sort_values("p_value").head(10)'),
        ("code", "watch.close()"),
    ]
    document = {
        "cells": [_cell(at, kind, text) for at, (kind, text) in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _cell(at: int, kind: str, text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    common = {"cell_type": kind, "id": f"cell-{at}", "metadata": {}, "source": lines}
    return common if kind == "markdown" else {**common, "execution_count": None, "outputs": []}


def _plain(text: str) -> str:
    """A name as Markdown shows it letter by letter: nothing in it is a tag, a link or a picture."""
    return "".join(f"&#{ord(letter)};" if letter in "<>&[]()*_`!#\\$\n" else letter for letter in text)
