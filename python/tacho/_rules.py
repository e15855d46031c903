"""Conditions over the numbers of a run: `memory.peak>2GiB`, for `pytest --tacho-fail-if`.

A condition is NAME, one of > >= < <= == !=, and a number with or without a unit. NAME is a field of the summary (docs/summary.md) with dots between
its levels; the unit at its end may be left out: `memory.peak` is `memory.peak_bytes`, `wall` is `wall_s`. Before it may stand `run:` or
`test:`: it is then asked only of the whole run, or only of each test.
"""

from __future__ import annotations

import operator
import re
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

_PATTERN = re.compile(
    r"\s*(?:(run|test)\s*:)?\s*([A-Za-z_][\w.]*)\s*(>=|<=|==|!=|>|<)\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z%]*)\s*"
)
_OPERATORS: Dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne
}  # fmt: skip
_UNITS: Dict[str, float] = {
    "": 1, "B": 1, "%": 0.01, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "W": 1, "J": 1, "kJ": 1e3, "Wh": 3600, "kWh": 3.6e6
}  # fmt: skip
_UNITS.update({form.format(letter): 1024.0**power for power, letter in enumerate("KMGTP", 1) for form in ("{}", "{}iB", "{}B")})
_SUFFIXES = ("", "_bytes", "_s", "_ratio", "_percent", "_joules", "_watts")


class Rule(NamedTuple):
    text: str
    only: Optional[str]  # "run", "test"
    name: str
    operator: str
    value: float


def parse(text: str) -> Rule:
    """ValueError says what is wrong.

    >>> parse("memory.peak > 2GiB").value == 2 * 2**30
    True
    >>> parse("test:wall>=500ms")[1:]
    ('test', 'wall', '>=', 0.5)
    """
    match = _PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no condition: write NAME>NUMBER, as in 'memory.peak>2GiB' or 'test:wall>5s'")
    only, name, sign, number, unit = match.groups()
    if unit not in _UNITS:
        raise ValueError(f"{text!r}: the unit {unit!r} is not known; there are {', '.join(u for u in _UNITS if u)}")
    return Rule(text.strip(), only, name, sign, float(number) * _UNITS[unit])


class NoSuchName(Exception):
    pass


def value_of(name: str, numbers: Mapping[str, Any]) -> Optional[float]:
    """None: it was not measured.

    >>> value_of("memory.peak", {"memory": {"peak_bytes": 7}})
    7.0
    """
    *levels, last = name.split(".")
    found: Any = numbers
    for level in levels:
        found = found.get(level) if isinstance(found, Mapping) else None
    if isinstance(found, Mapping):
        for suffix in _SUFFIXES:
            value = found.get(last + suffix, ...)
            if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
                return None if value is None else float(value)
    raise NoSuchName(name)


def holds(rule: Rule, numbers: Mapping[str, Any]) -> "tuple[Optional[float], bool]":
    """The number, and whether the condition is true of it."""
    value = value_of(rule.name, numbers)
    return value, value is not None and _OPERATORS[rule.operator](value, rule.value)


# A phase in the shape of the summary: where each of its fields stands there.
_OF_PHASE = {
    "wall_s": "duration_s", "cpu.total_s": "cpu_s", "cpu.user_s": "user_s", "cpu.system_s": "system_s", "cpu.mean_cores": "cores",
    "memory.peak_bytes": "peak_memory_bytes", "memory.peak_rss_bytes": "rss_peak_bytes", "memory.peak_pss_bytes": "pss_peak_bytes",
    "memory.peak_uss_bytes": "uss_peak_bytes", "memory.peak_vms_bytes": "vms_peak_bytes", "memory.peak_swap_bytes": "swap_peak_bytes",
    "io.read_bytes": "read_bytes", "io.write_bytes": "write_bytes", "io.read_chars": "read_chars", "io.write_chars": "write_chars",
    "io.read_calls": "read_calls", "io.write_calls": "write_calls", "faults.major": "major_faults", "faults.minor": "minor_faults",
    "switches.voluntary": "voluntary", "switches.involuntary": "involuntary", "processes.peak": "processes_peak",
    "threads.peak": "threads_peak", "fds.peak": "fds_peak", "network.rx_bytes": "net_rx_bytes", "network.tx_bytes": "net_tx_bytes",
    "disk.read_bytes": "disk_read_bytes", "disk.write_bytes": "disk_written_bytes", "energy.node_joules": "energy_joules",
}  # fmt: skip


def numbers_of_phase(phase: Mapping[str, Any]) -> Dict[str, Any]:
    """Under the names of the summary; under its own where these are no others'."""
    numbers: Dict[str, Any] = {}
    for name, field in _OF_PHASE.items():
        group, _, last = name.rpartition(".")
        at = numbers.setdefault(group, {}) if group else numbers
        at[last] = phase.get(field)
    return {**phase, **numbers}
