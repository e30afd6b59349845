"""Limits of the reader, each with its reason. All sizes are bytes unless said otherwise."""

from __future__ import annotations

#: Bytes handed to the JSON parser a call. Larger chunks pay in page faults, smaller ones in calls.
CHUNK = 256 << 10

#: Bytes that one task of a worker, or one step of the in-process reader, covers.
BLOCK = 4 << 20

#: Bytes that are read before anything is known of a file.
HEAD = 64 << 10

#: Below this many bytes of text, worker processes cost more than they win.
SMALL = 6 << 20

#: The largest element (event, or value beside the events) that is held in memory. Real events stay
#: under 1 MB; a larger one is a string that never ends, or an attack.
MAX_ELEMENT = 32 << 20

#: A value beside the events that is larger than this is skipped, not kept in the header.
MAX_HEADER_VALUE = 1 << 20

#: Nesting inside one element: what the JSON parser itself takes. Kineto nests 4 deep.
MAX_DEPTH = 1024

#: Bytes that one search for the next intact event may look at in starts of events that turn out to be
#: broken themselves: keeps a file made of nothing else linear.
MAX_SEARCH = 64 << 20

#: Stretches of damage in one file. A torn file has a few; finding the way behind each takes a tenth of
#: a millisecond, and a file with more of them is something else than a damaged trace.
MAX_DAMAGE = 20_000

#: Rows of a frame: positions are int32.
MAX_EVENTS = (1 << 31) - 1

#: Text in a gzip file may be this many times larger than the file, once it is larger than
#: MAX_FREE_TEXT. Deflate tops out near 1032; real traces stay under 60.
MAX_RATIO = 200
MAX_FREE_TEXT = 256 << 20

#: Floats up to here (in microseconds) are near enough to their decimal text that rounding to whole
#: nanoseconds is exact: the spacing of doubles is below 0.001 up to 2**43.
EXACT_US = float(1 << 43)

#: Integers of microseconds up to here fit int64 as nanoseconds.
MAX_US = (1 << 63) // 1000 - 1

#: Durations from here on (a year, in ns) are unsigned numbers that wrapped, not durations.
MAX_DURATION_NS = 366 * 86_400 * 10**9

#: An event further than this from the median of all others (a day, in ns) has a broken clock.
MAX_DISTANCE_NS = 86_400 * 10**9
