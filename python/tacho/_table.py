"""Tables of a run, and how their columns become those of pandas, polars, Arrow or plain Python.

The library hands out batches in Arrow's layout. Packages that know Arrow take them by `__arrow_c_stream__`, with no copy and
no package between; pandas gets columns that are made here with numpy, which pandas brings along.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ._error import TachoError
from ._library import CArray, CSchema, CStream, capsule, release, stream_next, stream_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Field(NamedTuple):
    """What a column is: `unit` is "bytes", "s" and the like, "" for plain numbers; `kind` is None for keys such as the time."""

    name: str
    type: str  # "time", "integer", "real", "text", "flag"
    unit: str
    kind: Optional[str]  # "counter", "gauge", "peak", "constant"
    help: str


_TYPES = {b"tsn:UTC": "time", b"l": "integer", b"g": "real", b"i": "text", b"b": "flag"}


def _schema_columns(schema: CSchema) -> List[Tuple[str, str]]:
    """Name and type of each column."""
    found = []
    for i in range(schema.n_children):
        child = schema.children[i].contents
        if child.format not in _TYPES:
            raise TachoError(0, f"column {child.name!r} has a type that this package does not know: {child.format!r}")
        found.append((child.name.decode("utf-8", "replace"), _TYPES[child.format]))
    return found


# ---- one column of one batch ----


def _ones(address: Optional[int], length: int) -> Optional[List[bool]]:
    """A bitmap as booleans; None where there is none: all are true."""
    if not address:
        return None
    data = ctypes.string_at(address, (length + 7) // 8)
    return [bool(data[i >> 3] >> (i & 7) & 1) for i in range(length)]


def _texts(array: CArray) -> List[str]:
    """Of a dictionary."""
    n = array.length
    at = (ctypes.c_int32 * (n + 1)).from_address(array.buffers[1]) if n else [0]
    data = ctypes.string_at(array.buffers[2], at[n]) if n and at[n] else b""
    return [data[at[i] : at[i + 1]].decode("utf-8", "replace") for i in range(n)]


_CTYPES: Dict[str, Any] = {"time": ctypes.c_int64, "integer": ctypes.c_int64, "real": ctypes.c_double, "text": ctypes.c_int32}


def _values(array: CArray, type: str) -> List[Any]:
    """As Python values, None for what is not known; times are ns since 1970, UTC."""
    n = array.length
    if not n:
        return []
    values: List[Any]
    if type == "flag":
        values = list(_ones(array.buffers[1], n) or [])
    else:
        values = (_CTYPES[type] * n).from_address(array.buffers[1])[:]
    valid = _ones(array.buffers[0], n)
    if type == "text":
        texts = _texts(array.dictionary.contents)
        return [texts[v] if valid is None or valid[i] else None for i, v in enumerate(values)]
    if valid is not None:
        return [v if known else None for v, known in zip(values, valid)]
    return values


# ---- batches ----


class Batch:
    """Some rows of a table: what `run.follow()` yields.

    `rows()` and `to_dict()` are plain Python. Packages that know Arrow take it whole (`pyarrow.record_batch(batch)`), once:
    its memory is theirs from then on.
    """

    def __init__(self, schema: CSchema, array: CArray) -> None:
        self._schema: Optional[CSchema] = schema
        self._array: Optional[CArray] = array
        self._columns = _schema_columns(schema)
        self._rows = int(array.length)

    @property
    def columns(self) -> List[str]:
        return [name for name, _ in self._columns]

    def __len__(self) -> int:
        return self._rows

    def _open(self) -> CArray:
        if self._array is None or not self._array.release:
            raise TachoError(0, "this batch was handed to another package, or released: its data is not here any more")
        return self._array

    def to_dict(self) -> Dict[str, List[Any]]:
        """Columns by name; None is what is not known."""
        array = self._open()
        return {name: _values(array.children[i].contents, type) for i, (name, type) in enumerate(self._columns)}

    def rows(self) -> Iterator[Dict[str, Any]]:
        columns = self.to_dict()
        return (dict(zip(columns, row)) for row in zip(*columns.values()))

    def to_pandas(self) -> "pandas.DataFrame":
        parts = _PandasColumns(self._columns)
        parts.add(self._open())
        return parts.frame()

    def __arrow_c_array__(self, requested_schema: object = None) -> Tuple[object, object]:
        array = self._open()
        schema, self._schema, self._array = self._schema, None, None
        return capsule(schema), capsule(array)

    def release(self) -> None:
        """Gives the memory back now, not when Python gets to it."""
        for structure in (self._array, self._schema):
            if structure is not None:
                release(structure)
        self._array = self._schema = None

    def __del__(self) -> None:
        if getattr(self, "_schema", None) is not None:
            self.release()

    def __repr__(self) -> str:
        return f"<tacho.Batch: {self._rows} rows, {len(self._columns)} columns>"


class Batches(Iterator[Batch]):
    """Of a stream, which is released at its end, by `close()`, or when this is given up."""

    def __init__(self, stream: CStream) -> None:
        self._stream: Optional[CStream] = stream

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> Batch:
        if self._stream is None:
            raise StopIteration
        try:
            array = stream_next(self._stream)
            if array is not None:
                try:
                    return Batch(stream_schema(self._stream), array)
                except BaseException:
                    release(array)
                    raise
        except TachoError:
            self.close()
            raise
        self.close()
        raise StopIteration

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            release(stream)

    def __del__(self) -> None:
        if getattr(self, "_stream", None) is not None:
            self.close()


# ---- pandas ----

_DTYPES = {"time": "i8", "integer": "i8", "real": "f8", "text": "i4", "flag": "?"}


class _Growing:
    """An array that grows. Memory is reserved in large steps and touched where values are written, and nowhere else."""

    def __init__(self, np: Any, dtype: str, nothing: Any) -> None:
        self._np = np
        self._dtype = dtype
        self._nothing = nothing  # stands where there is no value
        self._data: Any = None

    def room(self, first: int, last: int) -> Any:
        """For these rows; those before the first one that are new get `nothing`."""
        had = 0 if self._data is None else len(self._data)
        if last > had:
            try:
                grown = self._np.empty(max(4 * had, last + (1 << 16)), dtype=self._dtype)
            except MemoryError:  # a limit of address space
                grown = self._np.empty(last + last // 8, dtype=self._dtype)
            if self._data is None:
                grown[:first] = self._nothing
            else:
                grown[:first] = self._data[:first]
            self._data = grown
        return self._data[first:last]

    def fill(self, first: int, last: int) -> None:
        """Rows without values. As long as there are no others, nothing is kept of them."""
        if self._data is not None:
            self.room(first, last)[:] = self._nothing

    def array(self, rows: int) -> Any:
        if self._data is None:
            return self._np.full(rows, self._nothing, dtype=self._dtype) if self._nothing else self._np.zeros(rows, dtype=self._dtype)
        self._data.resize(rows, refcheck=False)
        return self._data


class _PandasColumns:
    """Columns that grow by batches, which can be released at once."""

    def __init__(self, columns: Sequence[Tuple[str, str]]) -> None:
        import numpy

        np: Any = numpy
        self._np = np
        self._columns = list(columns)
        nothing = {"real": np.nan, "text": -1}
        self._data = [_Growing(np, _DTYPES[type], nothing.get(type, 0)) for _, type in columns]
        self._masks = [_Growing(np, "?", False) for _ in columns]
        self._numbers: List[Dict[str, int]] = [{} for _ in columns]
        self._rows = 0

    def _at(self, address: int, dtype: str, n: int) -> Any:
        size = self._np.dtype(dtype).itemsize * n
        return self._np.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype, count=n)

    def _bits(self, address: int, n: int) -> Any:
        return self._np.unpackbits(self._at(address, "u1", (n + 7) // 8), count=n, bitorder="little").view(bool)

    def _values(self, i: int, type: str, array: CArray, n: int) -> Any:
        if type == "flag":
            return self._bits(array.buffers[1], n)
        values = self._at(array.buffers[1], _DTYPES[type], n)
        if type != "text":
            return values
        numbers = self._numbers[i]  # of texts in the whole column: each batch has a dictionary of its own
        own = [numbers.setdefault(text, len(numbers)) for text in _texts(array.dictionary.contents)]
        return self._np.asarray(own or [0], dtype="i4")[values]

    def add(self, batch: CArray) -> None:
        np, first = self._np, self._rows
        last = first + int(batch.length)
        n = last - first
        for i, (_, type) in enumerate(self._columns if n else []):
            array = batch.children[i].contents
            known = array.buffers[0]
            missing = int(array.null_count) if known else 0
            unknown = ~self._bits(known, n) if missing not in (0, n) else None
            if missing == n:
                self._data[i].fill(first, last)
            else:
                part = self._data[i].room(first, last)
                part[:] = self._values(i, type, array, n)
                if unknown is not None and type in ("real", "text"):
                    np.copyto(part, self._data[i]._nothing, where=unknown)
            if type in ("real", "text"):
                continue
            if missing:
                self._masks[i].room(first, last)[:] = True if unknown is None else unknown
            else:
                self._masks[i].fill(first, last)
        self._rows = last

    def _column(self, i: int, type: str) -> Any:
        import pandas

        np = self._np
        data = self._data[i].array(self._rows)
        if type == "real":
            return data
        if type == "text":
            return pandas.Categorical.from_codes(data, categories=pandas.Index(list(self._numbers[i]), dtype="str"))
        mask = self._masks[i].array(self._rows)
        if type == "flag":
            return pandas.arrays.BooleanArray(data, mask)
        if type == "integer":
            return pandas.arrays.IntegerArray(data, mask)
        data[mask] = np.iinfo("i8").min
        return pandas.DatetimeIndex(data.view("M8[ns]"), tz="UTC")

    def frame(self) -> "pandas.DataFrame":
        import pandas

        columns = {name: self._column(i, type) for i, (name, type) in enumerate(self._columns)}
        return pandas.DataFrame(columns, copy=False)


# ---- tables ----


class Table:
    """A table of a run, which is read when it is asked for its rows, each time anew.

    Anything that speaks Arrow takes it as it is: `polars.DataFrame(table)`, `pyarrow.table(table)`, and DuckDB by the name of the
    variable: `processes = run.table("process"); duckdb.sql('select max("proc.mem.rss") from processes')`.

    >>> import tacho
    >>> table = tacho.open("example.tacho").table("process", metrics=["proc.mem.rss"])
    >>> table.columns
    ['time', 'elapsed', 'host', 'instance', 'pid', 'process', 'proc.mem.rss']
    >>> table.field("proc.mem.rss").unit
    'bytes'
    >>> next(table.rows())["instance"].startswith("python")
    True
    """

    def __init__(self, name: str, fields: Dict[str, Field], stream: Callable[[], CStream]) -> None:
        self.name = name
        self._known = fields
        self._stream = stream
        first = stream()  # wrong names of metrics are told here, not later
        try:
            schema = stream_schema(first)
            try:
                self._columns = _schema_columns(schema)
            finally:
                release(schema)
        finally:
            release(first)

    @property
    def columns(self) -> List[str]:
        return [name for name, _ in self._columns]

    @property
    def fields(self) -> List[Field]:
        """What each column is."""
        return [self._known.get(name, Field(name, type, "", None, "")) for name, type in self._columns]

    def field(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"table {self.name!r} has no column {name!r}")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return capsule(self._stream())

    def batches(self) -> Batches:
        return Batches(self._stream())

    def rows(self) -> Iterator[Dict[str, Any]]:
        """Each row as a dict, without any other package; None is what is not known, times are ns since 1970."""
        for batch in self.batches():
            yield from batch.rows()

    def to_dict(self) -> Dict[str, List[Any]]:
        """Columns by name, as lists."""
        columns: Dict[str, List[Any]] = {name: [] for name in self.columns}
        for batch in self.batches():
            for name, values in batch.to_dict().items():
                columns[name] += values
        return columns

    def to_pandas(self) -> "pandas.DataFrame":
        """A DataFrame: integers are Int64 also where some are missing, texts are categories, times have their zone."""
        parts = _PandasColumns(self._columns)
        for batch in self.batches():
            parts.add(batch._open())
            batch.release()
        return parts.frame()

    def to_polars(self) -> "polars.DataFrame":
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> "pyarrow.Table":
        """A pyarrow.Table. Each column of texts has one dictionary."""
        import pyarrow

        return pyarrow.table(self).unify_dictionaries()

    def _html(self, most: int) -> str:
        from html import escape

        rows = list(itertools.islice(self.rows(), most + 1))
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{'' if value is None else escape(str(value))}</td>" for value in row.values()) + "</tr>" for row in rows[:most]
        )
        more = f"<p>The first {most} rows of table {escape(self.name)}.</p>" if len(rows) > most else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _repr_html_(self) -> str:
        return self._html(10)

    def __repr__(self) -> str:
        return f"<tacho.Table {self.name!r}: {len(self._columns)} columns>"
