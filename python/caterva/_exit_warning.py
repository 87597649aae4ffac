"""Warns at exit of pending changes that daemon threads hold.

Daemon threads are stopped at exit. The objects that they hold are never collected, so their
pending changes are neither committed nor warned of elsewhere. They are not committed here
either: a thread may have been in the middle of its changes.
"""

from __future__ import annotations

import atexit
import gc
import threading
import warnings

from ._array import Array
from ._shown import shown


def _warn_of_daemons() -> None:
    if not any(thread.daemon for thread in threading.enumerate()):
        return
    for array in gc.get_objects():
        if not issubclass(type(array), Array) or array.closed or not array.writable:
            continue
        if array.path is not None and array._has_pending():
            warnings.warn(
                f"<caterva.Array {shown(array.path)!a}> has changes that were not committed "
                "when the interpreter ended: they are lost if a daemon thread holds the array",
                ResourceWarning,
                stacklevel=1,
                source=array,
            )


atexit.register(_warn_of_daemons)
