"""What the end of the interpreter would lose in silence.

Daemon threads are stopped, not ended: what they hold is never collected, so what is pending in
it is neither committed nor warned of. It is not committed for them either, because it may be
half of what they are about to write.
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
