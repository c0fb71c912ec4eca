"""Rows in little memory: each text once, and a number for it in every row."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas
import pyarrow
import pyarrow.compute

Integers = npt.NDArray[np.int64]


def packed_texts(batches: "Iterable[pyarrow.RecordBatch]", names: Collection[str]) -> "Iterator[pyarrow.RecordBatch]":
    """The same with columns of texts as dictionaries, as far as they are there; raises ArrowInvalid for no UTF-8."""
    pool = pyarrow.system_memory_pool()  # the default one keeps what was let go
    for batch in batches:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in names:
                columns.append(pyarrow.compute.dictionary_encode(column, memory_pool=pool))
                columns[-1].dictionary.validate(full=True)
            else:  # a copy: a column that is kept keeps all of its batch
                columns.append(pyarrow.concat_arrays([column, column.slice(0, 0)], memory_pool=pool))
        yield pyarrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def packed_frame(rows: pyarrow.Table) -> pandas.DataFrame:
    """The rows with dictionaries (`packed_texts`) as categories, in the order of texts."""
    columns = {}
    for name in rows.column_names:
        column, rows = rows[name], rows.drop_columns([name])  # which are let go one after the other
        if pyarrow.types.is_dictionary(column.type):
            chunks = column.unify_dictionaries().chunks
            names = chunks[0].dictionary.to_pylist() if chunks else []
            order = sorted(range(len(names)), key=names.__getitem__)
            kind = np.min_scalar_type(-max(1, len(names)))
            rank = np.empty(len(names), kind)
            rank[order] = np.arange(len(names))
            codes = [rank[chunk.indices.to_numpy(zero_copy_only=False)] for chunk in chunks] or [np.zeros(0, kind)]
            categories = pandas.Index([names[at] for at in order], dtype="str")
            columns[name] = pandas.Categorical.from_codes(np.concatenate(codes), categories=categories)
        else:
            columns[name] = column.to_pandas() if pyarrow.types.is_string(column.type) else column.to_numpy()
    return pandas.DataFrame(columns, copy=False)


def row_keys(frame: pandas.DataFrame, columns: Sequence[str]) -> Integers:
    """A number for each row: in the order of these columns, and the same where all of them are; shape (rows,).

    Columns are texts, categories in the order of texts, or integers; the number is -1 where a text is absent.
    """
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
