#!/usr/bin/python3
"""A reader of recordings, written from docs/format.md to be read beside it.

It shares no code with the program, takes a whole recording into memory and gives up at the first thing that is wrong:
the program's reader is the one that must survive anything. It yields the same dictionaries as `tacho debug dump FILE`
prints, one line of JSON each; the tests compare the two value by value.

    tests/decoder.py FILE
"""

import json
import struct
import sys

import zstandard

MAGIC = b"\xd5TC1"
START, META, SCHEMA, SEGMENT, INDEX, SUMMARY = range(1, 7)  # types of blocks
FIRST = 1  # flag of a SEGMENT block
RECORD_SEGMENT, RECORD_INSTANCE, RECORD_GONE, RECORD_EVENT, RECORD_CELLS, RECORD_TICK = range(1, 7)
AGAIN, SHORTENED = 1, 2  # flags of an INSTANCE
VALIDITY = 1  # flag of CELLS
MAX_WINDOW = 1 << 20
U64 = (1 << 64) - 1


class Damaged(Exception):
    pass


# ---- bytes ----

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def crc_of_byte(value):
    for _ in range(8):
        value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value


CRC_TABLE = [crc_of_byte(i) for i in range(256)]


class Bytes:
    """Something to read from, front to back."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & U64

    def more(self):
        return self.at < len(self.data)

    def signed(self):
        """A zigzag varint: 0, -1, 1, -2, 2..."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def bytes(self):
        length = self.varint()
        if self.at + length > len(self.data):
            raise Damaged("a length reaches past the end")
        self.at += length
        return self.data[self.at - length:self.at]

    def pairs(self):
        return [(self.bytes().decode(), self.bytes()) for _ in range(self.varint())]


def as_signed(value):
    """The 64-bit two's complement number that a sum modulo 2^64 stands for."""
    value &= U64
    return value - (1 << 64) if value >> 63 else value


HIDDEN = [(0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200B), (0x200E, 0x200F),
          (0x2028, 0x202E), (0x2060, 0x2064), (0x2066, 0x206F), (0xFDD0, 0xFDEF), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB),
          (0xE0000, 0xE007F)]


def is_hidden(code):
    """Characters that a terminal or an editor would obey or not show."""
    return any(first <= code <= last for first, last in HIDDEN) or code & 0xFFFE == 0xFFFE


def as_text(value):
    """How the program shows bytes in JSON: as they are when they are UTF-8, else with escapes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    out = ""
    for char in value.decode(errors="surrogateescape"):
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:
            out += f"\\x{code - 0xDC00:02x}"
        elif char in "\n\t\\":
            out += {"\n": "\\n", "\t": "\\t", "\\": "\\\\"}[char]
        elif is_hidden(code):
            out += f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        else:
            out += char
    return out


def show_pairs(pairs):
    return [[key, as_text(value)] for key, value in pairs]


# ---- blocks ----

def blocks(data):
    """(offset, type, flags, payload) of each whole block; a last one that is cut off is left out."""
    at = sequence = 0
    file_tag = data[4:8]
    while at + 28 <= len(data):
        header = data[at:at + 28]
        magic, tag, number, kind, flags, length, payload_crc, header_crc = struct.unpack("<4s4sIHHIII", header)
        if magic != MAGIC or header_crc != crc32c(header[:24]):
            raise Damaged(f"no block at {at}")
        if at + 28 + length > len(data):
            return
        payload = data[at + 28:at + 28 + length]
        if payload_crc != crc32c(payload):
            raise Damaged(f"damaged block at {at}")
        if tag != file_tag or number != sequence:
            raise Damaged(f"block out of place at {at}")
        yield at, kind, flags, payload
        at += 28 + length
        sequence += 1


def decode_schema(payload):
    content = Bytes(zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj().decompress(payload))
    sets = []
    for _ in range(content.varint()):
        fields = {key: value.decode() for key, value in content.pairs()}
        metrics = []
        for _ in range(content.varint()):
            pairs = dict(content.pairs())
            metric = {key: pairs[key].decode() if key in pairs else None
                      for key in ("name", "help", "panel", "kind", "fold", "unit", "tier", "availability", "why")}
            metric["scale"] = struct.unpack("<d", pairs["scale"])[0] if "scale" in pairs else 1.0
            metrics.append(metric)
        sets.append({**fields, "metrics": metrics})
    return sets


def decode_index(payload):
    """Offsets and start times of segments."""
    content, offset, time, entries = Bytes(payload), 0, 0, []
    for _ in range(content.varint()):
        offset += content.varint()
        time += content.signed()
        entries.append((offset, time))
    return entries


# ---- segments ----

class Row:
    def __init__(self, instance, columns):
        self.instance, self.valid, self.cells = instance, 0, [0] * columns

    def state(self):
        return (self.valid, tuple(self.cells))


class Segment:
    """One segment: it has all it needs. `rows` are those of the segment before, to tell what really changed."""

    def __init__(self, sets, previous):
        self.sets = sets
        self.previous = previous  # {(set, row): Row}
        self.rows = {}
        self.stream = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
        self.content = b""
        self.first_tick = True
        self.touched = set()

    def feed(self, payload):
        """The records that can be told once this block has arrived."""
        self.content += self.stream.decompress(payload)
        while True:
            view = Bytes(self.content)
            try:
                kind, body = view.varint(), view.bytes()
            except (IndexError, Damaged):
                return  # the rest comes with the next block
            self.content = self.content[view.at:]
            yield from self.record(kind, Bytes(body))

    def record(self, kind, body):
        readers = {RECORD_SEGMENT: self.start, RECORD_INSTANCE: self.instance, RECORD_GONE: self.gone,
                   RECORD_EVENT: self.event, RECORD_CELLS: self.cells, RECORD_TICK: self.tick}
        if kind in readers:  # unknown ones are skipped
            record = readers[kind](body)
            if record:
                yield record

    def start(self, body):
        self.number, self.clock, self.wall = body.varint(), body.signed(), body.signed()

    def place(self, body):
        group, row, instance = body.varint(), body.varint(), body.varint()
        return group, row - 1 if row else None, instance

    def instance(self, body):
        group, row, instance = self.place(body)
        flags, time, pairs = body.varint(), self.clock + body.signed(), body.pairs()
        again = bool(flags & AGAIN)
        known = False
        if row is not None:
            before = self.rows.get((group, row)) or self.previous.get((group, row))
            known = before is not None and before.instance == instance
            if not known:
                self.previous.pop((group, row), None)
            if not known or (group, row) not in self.rows:
                self.rows[group, row] = Row(instance, len(self.sets[group]["metrics"]))
        if known and flags & SHORTENED:
            return None
        return {"type": "instance", "time": time, "set": group, "row": row, "id": instance, "again": again or known,
                "pairs": show_pairs(pairs)}

    def gone(self, body):
        group, row, instance = self.place(body)
        time, pairs = self.clock + body.signed(), body.pairs()
        if row is not None:
            if self.rows.pop((group, row)).instance != instance:
                raise Damaged("somebody else is gone")
            self.previous.pop((group, row), None)
            self.touched.discard((group, row))
        return {"type": "gone", "time": time, "set": group, "row": row, "id": instance, "pairs": show_pairs(pairs)}

    def event(self, body):
        time, kind, pairs = self.clock + body.signed(), body.bytes(), body.pairs()
        return {"type": "event", "time": time, "kind": as_text(kind), "pairs": show_pairs(pairs)}

    def cells(self, body):
        group, flags, count = body.varint(), body.varint(), body.varint()
        rows, number = [], -1
        for _ in range(count):
            number += 1 + body.signed()
            rows.append(self.rows[group, number])
            self.touched.add((group, number))
        if flags & VALIDITY:
            for row in rows:
                row.valid ^= body.varint()
        columns = body.varint()
        for column in range(64):
            if not columns >> column & 1:
                continue
            few = body.varint()
            if few:
                index = -1
                for _ in range(few):
                    index += 1 + body.varint()
                    rows[index].cells[column] = as_signed(rows[index].cells[column] + body.signed())
            else:
                for row in rows:
                    row.cells[column] = as_signed(row.cells[column] + body.signed())

    def tick(self, body):
        self.number += body.varint()
        self.clock += body.signed()
        later = [[body.varint(), body.varint()] for _ in range(body.varint())] if body.more() else []
        at = body.varint() if body.more() else 0  # 1: at an edge, 2: the last
        if self.first_tick:
            # Values were stated anew: only those that differ from what was known are news.
            self.touched = {place for place, row in self.rows.items()
                            if row.state() != self.previous.get(place, Row(None, len(row.cells))).state()}
            self.previous, self.first_tick = {}, False
        changes = [{"set": group, "row": number, "id": self.rows[group, number].instance,
                    "valid": self.rows[group, number].valid, "cells": list(self.rows[group, number].cells)}
                   for group, number in sorted(self.touched)]
        self.touched = set()
        told = ({"later": later} if later else {}) | ({"at": at} if at else {})
        return {"type": "tick", "time": self.clock, "number": self.number, **told, "rows": changes}


# ---- the file ----

def records(data):
    sets, segment = [], None
    for _, kind, flags, payload in blocks(data):
        if kind == META:
            yield {"type": "meta", "pairs": show_pairs(Bytes(payload).pairs())}
        elif kind == SUMMARY:
            yield {"type": "summary", "pairs": show_pairs(Bytes(payload).pairs())}
        elif kind == SCHEMA:
            sets = decode_schema(payload)
            yield {"type": "schema", "sets": sets}
        elif kind == SEGMENT:
            if flags & FIRST:
                segment = Segment(sets, segment.rows if segment else {})
            yield from segment.feed(payload)


def main():
    with open(sys.argv[1], "rb") as file:
        for record in records(file.read()):
            print(json.dumps(record, ensure_ascii=False))


if __name__ == "__main__":
    main()
