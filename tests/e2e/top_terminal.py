"""A terminal for `tacho top`: a real pty, and pyte, which keeps what a terminal would show."""

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time

from exported import reader
from recorder import PATIENCE_S, TACHO

KEYS = {
    "up": "\033[A", "down": "\033[B", "right": "\033[C", "left": "\033[D", "shift-left": "\033[1;2D",
    "shift-right": "\033[1;2C", "home": "\033[H", "end": "\033[F", "page-up": "\033[5~", "page-down": "\033[6~",
    "f1": "\033OP", "f6": "\033[17~", "f10": "\033[21~", "enter": "\r", "esc": "\033", "backspace": "\x7f", "ctrl-c": "\x03",
    "ctrl-z": "\x1a",
}  # fmt: skip
ENVIRONMENT = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLORTERM": "", "NO_COLOR": ""}


class Terminal:
    def __init__(self, *words, columns=100, rows=30, env=None, cwd=None, wrapper=()):
        pyte = reader("pyte")
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.ours, self.theirs = os.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.resize(columns, rows, tell=False)
        self.process = subprocess.Popen(
            [*wrapper, TACHO, "top", *map(str, words)], stdin=self.theirs, stdout=self.theirs, stderr=subprocess.PIPE, cwd=cwd,
            env={**os.environ, **ENVIRONMENT, **(env or {})}, preexec_fn=self.own_session)  # fmt: skip

    def own_session(self):
        os.setsid()
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)

    def resize(self, columns, rows, tell=True):
        if tell:
            self.screen.resize(rows, columns)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, seconds=0.0):
        """Takes in what comes within that time; the bytes."""
        begin, end = len(self.raw), time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                break
            try:
                part = os.read(self.ours, 65536)
            except OSError:
                break
            if not part:
                break
            self.raw += part
            self.stream.feed(part)
        return self.raw[begin:]

    def settle(self):
        """Reads until nothing more comes for a while."""
        while self.read(0.4):
            pass

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def until(self, condition, what):
        """Waits until the screen is so; a text: until it has that."""
        wanted = (lambda: condition in self.text()) if isinstance(condition, str) else condition
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.read(0.05)
            found = wanted()
            if found:
                return found
            if self.process.poll() is not None:
                self.read()
                found = wanted()
                if found:
                    return found
                break
        raise AssertionError(f"{what}:\n{self.text()}\n{self.process.poll()}")

    def type(self, *keys):
        for key in keys:
            os.write(self.ours, KEYS.get(key, key).encode())
            self.read(0.06 if key == "esc" else 0.0)

    def click(self, column, row):
        os.write(self.ours, f"\033[<0;{column + 1};{row + 1}M\033[<0;{column + 1};{row + 1}m".encode())

    def is_restored(self):
        """The modes are as they were, and the last that was said to the terminal ends ours."""
        self.read()
        now, then = termios.tcgetattr(self.theirs), self.before
        tail = self.raw[self.raw.rfind(b"\033[?1049h") :]
        return now[:4] == then[:4] and all(end in tail for end in (b"\033[?1049l", b"\033[?25h", b"\033[?1000l", b"\033[?7h"))

    def end(self, patience=PATIENCE_S):
        """Its exit status; the terminal is read until then."""
        end = time.monotonic() + patience
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read()
        return self.process.wait(timeout=1)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        for fd in (self.ours, self.theirs):
            with contextlib.suppress(OSError):
                os.close(fd)


@contextlib.contextmanager
def top(*words, **kwargs):
    terminal = Terminal(*words, **kwargs)
    try:
        yield terminal
    finally:
        terminal.close()
