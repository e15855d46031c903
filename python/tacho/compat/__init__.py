"""Classes of other monitors with their names and arguments, on top of tacho.

`RunLog`, `HWMonitor`, `ResourceSummary`, `build_resource_summary` and `probe_jax_peak_memory_mb` are those of pytyche's
`diagnostics.run_monitor`: programs that use them change the import and nothing else.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._run_monitor import HWMonitor as HWMonitor
    from ._run_monitor import ResourceSummary as ResourceSummary
    from ._run_monitor import RunLog as RunLog
    from ._run_monitor import build_resource_summary as build_resource_summary
    from ._run_monitor import probe_jax_peak_memory_mb as probe_jax_peak_memory_mb

_HOMES = {
    "HWMonitor": "_run_monitor", "ResourceSummary": "_run_monitor", "RunLog": "_run_monitor",
    "build_resource_summary": "_run_monitor", "probe_jax_peak_memory_mb": "_run_monitor",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module("." + _HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
