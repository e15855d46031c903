"""The exception of this package, alone: what raises it need not load the library."""

from __future__ import annotations


class TachoError(OSError):
    """A recording cannot be read, or something was asked of it that it does not have. The text says why.

    >>> import tacho
    >>> try:
    ...     tacho.open("nothing.tacho")
    ... except tacho.TachoError as error:
    ...     print("nothing.tacho" in str(error))
    True
    """

    def __str__(self) -> str:
        return str(self.strerror or super().__str__())
