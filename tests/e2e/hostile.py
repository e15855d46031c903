"""Recordings that somebody built to hurt a reader: small files that ask for much memory or time.

The encoder is the opposite of tests/decoder.py: it knows docs/format.md and shares no code with the program. Blocks have right
checksums and right zstd frames; what is wrong with a file is only what its function says. As a program it writes all of them:

    tests/e2e/hostile.py FOLDER
"""

import struct
import sys
from pathlib import Path

import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from decoder import FIRST, META, SCHEMA, SEGMENT, START, SUMMARY, crc32c  # noqa: E402

CONTENT = 31 << 20  # of a block: a little less than the format allows


# ---- the encoder ----

def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value):
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return varint(len(value)) + value


def pairs(items):
    return varint(len(items)) + b"".join(text(key) + text(value) for key, value in items.items())


def record(kind, body):
    return varint(kind) + varint(len(body)) + body


def segment(tick=0, time=0, wall=0):
    return record(1, varint(tick) + signed(time) + signed(wall))


def instance(group, row, number, items, flags=0, time=0):
    return record(2, varint(group) + varint(0 if row is None else row + 1) + varint(number) + varint(flags) + signed(time) +
                  pairs(items))


def gone(group, row, number, items, time=0):
    return record(3, varint(group) + varint(0 if row is None else row + 1) + varint(number) + signed(time) + pairs(items))


def event(kind, items, time=0):
    return record(4, signed(time) + text(kind) + pairs(items))


def cells(group, rows, validity, columns):
    """rows: row numbers in order; validity: one mask for each; columns: {number: a difference for each row}."""
    body, before = varint(group) + varint(1) + varint(len(rows)), -1
    for row in rows:
        body += signed(row - before - 1)
        before = row
    body += b"".join(map(varint, validity)) + varint(sum(1 << column for column in columns))
    for column in sorted(columns):
        body += varint(0) + b"".join(map(signed, columns[column]))
    return record(5, body)


def tick(number=1, time=10**9):
    return record(6, varint(number) + signed(time))


def metric(name, unit="count", kind="gauge", **more):
    return {"name": name, "help": "", "kind": kind, "fold": "sum", "unit": unit, "tier": "tick",
            "availability": "available", "scale": struct.pack("<d", 1), **more}


PROCESS = ("process", [metric("proc.cpu.time", "seconds", "counter"), metric("proc.mem.rss", "bytes")])


def schema(*sets):
    out = varint(len(sets))
    for name, metrics in sets:
        out += pairs({"name": name, "summary": "", "domain": name}) + varint(len(metrics)) + b"".join(map(pairs, metrics))
    return out


def new_packer():
    parameters = zstandard.ZstdCompressionParameters.from_level(5, window_log=20)
    return zstandard.ZstdCompressor(compression_params=parameters).compressobj()


class File:
    """A recording as it grows."""

    def __init__(self, *sets, meta=None):
        self.data, self.sequence, self.packer = b"", 0, None
        self.block(START, 0, struct.pack("<I", 0) + b"hostile recording"[:16])
        self.block(META, 0, pairs({"host": "node", "command": "job", "interval_ns": "1000000000", **(meta or {})}))
        packer = new_packer()
        self.block(SCHEMA, 0, packer.compress(schema(*(sets or (PROCESS,)))) + packer.flush())

    def block(self, kind, flags, payload):
        header = struct.pack("<4s4sIHHII", b"\xd5TC1", b"host", self.sequence, kind, flags, len(payload), crc32c(payload))
        self.data += header + struct.pack("<I", crc32c(header)) + payload
        self.sequence += 1
        return self

    def segment(self, content):
        """Begins one; `content` is its first block."""
        self.packer = new_packer()
        return self.more(content, FIRST)

    def more(self, content, flags=0):
        """A further block of the present segment."""
        return self.block(SEGMENT, flags, self.packer.compress(content) + self.packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))

    def repeat(self, content, blocks):
        """So many blocks of the same, each as long as a block may be."""
        whole = content * (CONTENT // len(content))
        for _ in range(blocks):
            self.more(whole)
        return self

    def end(self, items=None):
        return self.block(SUMMARY, 0, pairs(items or {"ended": "exited", "end_ns": "1000000000"})).data


# ---- the weapons ----

def reused_ids(blocks=2):
    """One id comes and goes, over and over: each time a new row of the table of processes."""
    pair = instance(0, 0, 1, {"pid": "1", "name": "a"}) + gone(0, 0, 1, {"how": "reaped"})
    return File().segment(segment() + tick()).repeat(pair, blocks).end()


def reused_ids_without_rows(blocks=2):
    """The same without a row: processes that ended before their first sample."""
    pair = instance(0, None, 1, {"pid": "1"}) + gone(0, None, 1, {})
    return File().segment(segment() + tick()).repeat(pair, blocks).end()


def gone_strangers(blocks=2):
    """The end of one that never began."""
    return File().segment(segment() + tick()).repeat(gone(0, None, 1, {}), blocks).end()


def long_commands(nr=90):
    """Command lines of nearly a megabyte."""
    content = segment() + b"".join(instance(0, i, i + 1, {"pid": str(i), "name": "a", "cmdline": b"x" * 1_000_000})
                                   for i in range(nr))
    file, step = File(), 31 * 1_000_030
    file.segment(content[:step])
    for at in range(step, len(content), step):
        file.more(content[at:at + step])
    return file.more(tick()).end()


def changing_commands(blocks=2):
    """One process that says a new command line all the time."""
    file = File().segment(segment() + tick())
    return file.repeat(instance(0, 0, 1, {"pid": "1", "cmdline": b"\x1b" * 1_000_000}, flags=1), blocks).end()


def ticks(blocks=2):
    """Ticks without anything in them."""
    return File().segment(segment() + instance(0, 0, 1, {"pid": "1"})).repeat(tick(), blocks).end()


def events(blocks=2, kind="mark"):
    """The job says something, over and over."""
    return File().segment(segment() + tick()).repeat(event(kind, {"name": "a"}), blocks).end()


def phases(blocks=2):
    """Phases that begin and never end."""
    return events(blocks, "phase.begin")


def many_rows(blocks=2):
    """The last row that the format has, in every set."""
    sets = [(f"set{i}", [metric(f"m{i}.{k}") for k in range(64)]) for i in range(256)]
    file = File(*sets)
    content = segment() + b"".join(instance(i, (1 << 20) - 1, 1, {"name": "a"}) for i in range(256)) + tick()
    return file.segment(content).repeat(tick(), blocks).end()


def wide_cells(blocks=1):
    """4,096 rows whose cells change in every tick."""
    rows = range(4096)
    start = segment() + b"".join(instance(0, i, i + 1, {"pid": str(i)}) for i in rows)
    change = cells(0, rows, [0] * 4096, {0: [1] * 4096, 1: [0] * 4096}) + tick()
    return File().segment(start + cells(0, rows, [3] * 4096, {0: [1] * 4096}) + tick()).repeat(change, blocks).end()


def groups(blocks=2):
    """A process in other groups every time."""
    file = File().segment(segment() + tick())
    return file.repeat(b"".join(instance(0, 0, 1, {"pid": "1", "groups": f"g{i}"}, flags=1) for i in range(1000)), blocks).end()


def far_future():
    """Two ticks, centuries apart."""
    return File().segment(segment() + instance(0, 0, 1, {"pid": "1"}) + tick() + tick(1, (1 << 63) - 10**10)).end()


def long_schema():
    """Texts of four megabytes in the description of the columns, and formulas in the metadata."""
    sets = [(f"set{i}", [metric(f"m{i}.{k}", help="h" * 100) for k in range(64)]) for i in range(200)]
    return File(*sets, meta={f"derived.a{i}": "bytes\x001\x00panel\x00m1.1+m2.2\x00" for i in range(200)}) \
        .segment(segment() + tick()).end()


def many_metas(nr=5_000):
    """Metadata with a new key each time."""
    file = File()
    for i in range(nr):
        file.block(META, 0, pairs({f"a{i}": "b"}))
    return file.segment(segment() + tick()).end()


def distinct_ids(nr=20_000):
    """Honest in form: so many processes, each with an id of its own."""
    content = b"".join(instance(0, 0, i + 1, {"pid": "1"}) + gone(0, 0, i + 1, {}) for i in range(nr))
    return File().segment(segment() + tick() + content).end()


WEAPONS = [reused_ids, reused_ids_without_rows, gone_strangers, long_commands, changing_commands, ticks, events, phases, many_rows,
           wide_cells, groups, far_future, long_schema, many_metas, distinct_ids]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for weapon in WEAPONS:
        if len(sys.argv) > 2 and weapon.__name__ not in sys.argv[2:]:
            continue
        data = weapon()
        (folder / f"{weapon.__name__}.tacho").write_bytes(data)
        print(f"{weapon.__name__}: {len(data)} bytes", flush=True)


if __name__ == "__main__":
    main()
