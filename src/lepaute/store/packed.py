"""Rows in little memory: each text once, and a number for it in every row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lepaute.store.tables import Table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas
    import pyarrow

    Integers = npt.NDArray[np.int64]


def packed_texts(rows: "pyarrow.Table | pyarrow.RecordBatch") -> "pyarrow.Table | pyarrow.RecordBatch":
    """The same with texts as dictionaries; raises ArrowInvalid for one that is no UTF-8."""
    import pyarrow

    columns = list(rows.columns)
    for at, field in enumerate(rows.schema):
        if pyarrow.types.is_string(field.type):
            columns[at] = columns[at].dictionary_encode()
            for chunk in columns[at].chunks if isinstance(columns[at], pyarrow.ChunkedArray) else [columns[at]]:
                chunk.dictionary.validate(full=True)
    return type(rows).from_arrays(columns, names=rows.schema.names)


def packed_frame(rows: "pyarrow.Table", table: Table) -> "pandas.DataFrame":
    """The columns of a table, rows in the order of its key; texts are categories, in the order of texts.

    rows : texts are dictionaries (`packed_texts`)
    """
    import numpy as np
    import pandas

    columns = {
        name: _categorical(rows[name]) if kind == "text" else rows[name].to_numpy()
        for name, kind in table.columns.items()
    }
    frame = pandas.DataFrame(columns, copy=False)
    key = row_keys(frame, table.key)
    return frame if (key[1:] >= key[:-1]).all() else frame.iloc[np.argsort(key, kind="stable")].reset_index(drop=True)


def _categorical(column: "pyarrow.ChunkedArray") -> "pandas.Categorical":
    import numpy as np
    import pandas

    chunks = column.unify_dictionaries().chunks
    names = chunks[0].dictionary.to_pylist() if chunks else []
    order = sorted(range(len(names)), key=names.__getitem__)
    kind = np.min_scalar_type(-max(1, len(names)))
    rank = np.empty(len(names), kind)
    rank[order] = np.arange(len(names))
    codes = [rank[chunk.indices.to_numpy(zero_copy_only=False)] for chunk in chunks] or [np.zeros(0, kind)]
    categories = pandas.Index([names[at] for at in order], dtype="str")
    return pandas.Categorical.from_codes(np.concatenate(codes), categories=categories)


def row_keys(frame: "pandas.DataFrame", columns: Sequence[str]) -> "Integers":
    """A number for each row: in the order of these columns, and the same where all of them are; shape (rows,).

    Columns are texts, categories in the order of texts, or integers; the number is -1 where a text is absent.
    """
    import numpy as np
    import pandas

    key, size = np.zeros(len(frame), np.int64), 1
    absent = np.zeros(len(frame), np.bool_)
    for name in columns:
        values = frame[name]
        if isinstance(values.dtype, pandas.CategoricalDtype) and values.cat.categories.is_monotonic_increasing:
            codes, count = values.cat.codes.to_numpy(), len(values.cat.categories)
        elif values.dtype.kind == "i":
            least = int(values.min()) if len(values) else 0
            codes = values.to_numpy() - least
            count = int(codes.max(initial=0)) + 1
        else:
            codes, names = pandas.factorize(values, sort=True)
            count = len(names)
        absent |= codes < 0
        if size * max(count, 1) > 2**62:  # numbers without gaps
            key, size = np.unique(key, return_inverse=True)[1], len(frame)
        key, size = key * max(count, 1) + codes, size * max(count, 1)
    key[absent] = -1
    return key
