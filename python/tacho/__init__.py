"""tacho records what a computing job does to the hardware under it; this package records from Python and reads recordings.

Record the process that runs, from outside of it, and read what was recorded:

>>> import tacho
>>> with tacho.record("example.tacho") as run:
...     with run.phase("load"):
...         data = [i * i for i in range(100_000)]
...     told = run.mark("loss", 0.3)
>>> run = tacho.open("example.tacho")
>>> run.summary.exit.code is None          # the process still runs
True
>>> [phase.name for phase in run.phases]
['load']
>>> "proc.mem.rss" in run.table("process").columns
True

Nothing is sampled in this process, and no thread is started: an executable, `tacho attach`, looks from outside.
Names are loaded when they are first used, so that importing the package costs a millisecond or two.
"""

# Aliases are for type checkers, and for them alone: see __getattr__().
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._find import executable as executable
    from ._find import library as library
    from ._error import TachoError as TachoError
    from ._marks import mark as mark
    from ._marks import phase as phase
    from ._record import Recording as Recording
    from ._record import TachoWarning as TachoWarning
    from ._record import record as record
    from ._record import start as start
    from ._record import stop as stop
    from ._run import Finding as Finding
    from ._run import Record as Record
    from ._run import Run as Run
    from ._run import open as open
    from ._table import Batch as Batch
    from ._table import Field as Field
    from ._table import Table as Table

    __version__: str

_HOMES = {
    "executable": "_find", "library": "_find",
    "TachoError": "_error",
    "mark": "_marks", "phase": "_marks",
    "Recording": "_record", "TachoWarning": "_record", "record": "_record", "start": "_record", "stop": "_record",
    "Finding": "_run", "Record": "_run", "Run": "_run", "open": "_run",
    "Batch": "_table", "Field": "_table", "Table": "_table",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from ._find import version

        value: object = version()
    elif name in _HOMES:
        from importlib import import_module

        value = getattr(import_module("." + _HOMES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
