"""What it means that a host event is innermost: the cause that idle time gets while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from analyzer.events.schema import Cat
from analyzer.index.vocabulary import Call, Role
from analyzer.report.columns import Text

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.tree import Mask, Rows, Tree
    from analyzer.index.waits import Waits

    Codes = npt.NDArray[np.int8]


class Cause(IntEnum):
    """Why a device was idle. The names are the report's; the order is that of ties."""

    UNLINKED = 0
    NOT_RECORDED = 1  # launches without device records: the device may have worked
    DEVICE_TURNAROUND = 2
    GRAPH_INTERNAL = 3
    DEPENDENCY = 4
    LAUNCH_LATENCY = 5
    BLOCKING_SYNC = 6
    PAGEABLE_COPY = 7
    ALLOCATOR = 8
    GRAPH_CAPTURE = 9  # launches are captured, and run nothing
    FIRST_USE = 10
    COMPILE = 11
    INPUT_PIPELINE = 12
    COLLECTIVE = 13  # the host waits in one
    PROFILER = 14
    DISPATCH = 15
    COMPILED_OVERHEAD = 16
    PYTHON = 17
    NO_HOST_EVENT = 18
    EARLIER_WORK = 19  # the device works through what was launched before the window, unrecorded

    @property
    def key(self) -> str:
        return self.name.lower()


#: A cause's key: one of a closed set, as the schema says.
CauseKey = Annotated[Text, msgspec.Meta(extra_json_schema={"enum": [cause.key for cause in Cause]})]

_CALL_CAUSES = (
    (Call.WAIT, Cause.BLOCKING_SYNC),
    (Call.ALLOCATE, Cause.ALLOCATOR),
    (Call.LOAD, Cause.FIRST_USE),
)
_CONTEXT_CAUSES = (
    (Role.INPUT, Cause.INPUT_PIPELINE),
    (Role.COLLECTIVE, Cause.COLLECTIVE),
)
REGION_ROLES = (Role.REGION, Role.REGION_PART, Role.GUARDS, Role.PROLOGUE)


@dataclass(frozen=True)
class Activity:
    """Per row of a tree: `cause` while the row is innermost, and the row to name as the `owner`."""

    cause: Codes
    owner: Rows


def roles_of(tree: Tree, roles: Codes) -> Codes:
    """Role of each operator, annotation or frame; DISPATCH for calls. `roles`: by name."""
    cat = tree.frame["cat"].to_numpy()
    call = (cat == Cat.RUNTIME) | (cat == Cat.DRIVER)
    return np.where(call, np.int8(Role.DISPATCH), roles[tree.name])


def calls_of(tree: Tree, calls: Codes) -> Codes:
    """Class of each runtime or driver call; OTHER for the rest. `calls`: by name."""
    cat = tree.frame["cat"].to_numpy()
    call = (cat == Cat.RUNTIME) | (cat == Cat.DRIVER)
    return np.where(call, calls[tree.name], np.int8(Call.OTHER))


def host_activity(tree: Tree, role: Codes, call: Codes, waits: Waits) -> Activity:
    """Cause and owner of every row, innermost first: the call, the context around it, the operator."""
    cat = tree.frame["cat"].to_numpy()
    rows = np.arange(tree.height, dtype=np.int32)
    region = np.isin(role, REGION_ROLES)
    operator = (cat == Cat.OP) & ~region & (role != Role.STEP)
    annotation = tree.nearest(((cat == Cat.ANNOTATION) | (role == Role.STEP)) & ~region)
    nearest = tree.nearest(operator | region)
    is_call = (cat == Cat.RUNTIME) | (cat == Cat.DRIVER)

    cause = np.full(tree.height, Cause.PYTHON, np.int8)
    owner = annotation.copy()

    def put(where: Mask, what: Cause, who: Rows) -> None:
        cause[where] = what
        owner[where] = who[where]

    put(is_call & (nearest < 0), Cause.DISPATCH, rows)
    put((nearest >= 0) & operator[nearest], Cause.DISPATCH, nearest)
    put((nearest >= 0) & region[nearest], Cause.COMPILED_OVERHEAD, nearest)
    context = tree.nearest(np.isin(role, [r for r, _ in _CONTEXT_CAUSES]))
    for wanted, what in _CONTEXT_CAUSES:
        put((context >= 0) & (role[context] == wanted), what, context)
    for kind, what in _CALL_CAUSES:
        put(call == kind, what, rows)
    put(waits.synchronous | waits.blocked, Cause.BLOCKING_SYNC, rows)
    put(waits.pageable, Cause.PAGEABLE_COPY, rows)
    put(waits.locked, Cause.ALLOCATOR, rows)
    # Compiling benchmarks kernels and waits for them: all of that is for the compiler.
    compiling = tree.nearest(role == Role.COMPILE)
    put(compiling >= 0, Cause.COMPILE, compiling)
    return Activity(cause, owner)


def frame_activity(tree: Tree, role: Codes, in_file: Mask) -> Activity:
    """The same for Python frames: compiling and data loading by any frame around, else PYTHON.

    The owner is the innermost frame that names a file (`in_file`, by row): `<built-in ...>` names no place.
    Run-time wrappers of compiled code count only where they are that frame: what they call is the user's.
    """
    inner = tree.nearest(in_file)
    cause = np.full(tree.height, Cause.PYTHON, np.int8)
    cause[(inner >= 0) & (role[inner] == Role.REGION_PART)] = Cause.COMPILED_OVERHEAD
    for wanted, what in (*_CONTEXT_CAUSES, (Role.COMPILE, Cause.COMPILE)):
        cause[tree.nearest(role == wanted) >= 0] = what
    return Activity(cause, inner)
