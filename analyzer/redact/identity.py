"""Takes out of a trace's text who recorded it, where, and with which arguments.

Text that says what ran stays: operators, kernels, runtime calls, a user's annotations. Inside every
string, whatever it is, the parts that are identity are replaced: folders of absolute paths, URLs,
addresses, accounts, and the names of users and hosts that the file itself gives away elsewhere.

What a profiler writes is known key by key (`identity_rules`): an argument or a header that nobody knows
is left out, and text where only certain words are possible is replaced where it is another.

A replacement is a keyed hash, so that equal names stay equal and different ones different; the key is
random unless a seed is given. Replacements hold no digits: readers take numbers out of lanes' names.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import orjson

from analyzer.events.schema import CATEGORIES, Cat
from analyzer.redact import identity_rules as rules
from analyzer.sources.kineto.dialects import CODES, last_number

Event = dict[str, Any]

#: What is taken out, unless it is kept by name.
KINDS = {
    "hosts": "names and addresses of machines, URLs",
    "users": "names of users and accounts",
    "paths": "folders of absolute paths; the part behind site-packages, and the name of a source file, stay",
    "inputs": "values of operators' arguments (Concrete Inputs); shapes and types stay",
    "processes": "names of processes, threads and lanes, other than those of Python and the profiler",
    "ids": "ids and names of the trace and of the job",
    "header": "what else stands beside the events, logs included",
    "args": "arguments of events that no profiler is known to write, and words where others are expected",
}
#: Taken out on request only (`hash_names`).
NAMES = "names"

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CACHE = 1 << 16

# -- paths -------------------------------------------------------------------------------------------

# A folder may hold spaces, commas, brackets; the last part ends where a word does. An apostrophe only
# belongs to it between letters: O'Brien.
_INNER = r"(?:[^/\\\"'<>|:;\r\n]|(?<=\w)'(?=\w))+"
_LAST = r"(?:[^/\\\s\"'<>|:;,()\[\]{}]|(?<=\w)'(?=\w))*"
_REST = rf"(?:{_INNER}[/\\]+)*{_LAST}"
_PATH = re.compile(
    r"(?i)"
    rf"\bfile:[/\\]*(?:[^\s\"'<>|]|(?<=\w)'(?=\w))*"  # a file's URL
    rf"|(?<![A-Za-z0-9])[a-z]:[/\\]+{_REST}"  # C:\...
    rf"|(?<![\w\\])\\\\+(?=\w){_REST}"  # \\server\share\...
    rf"|(?<![\w/])~[\w.'-]*[/\\]+{_REST}"  # ~alice/...
    rf"|(?:\$\{{?\w+\}}?|%\w+%)[/\\]+{_REST}"  # $HOME/...
    rf"|(?:(?<![\w./)\]])|(?<=-[ILB]))/(?=[^\s/\\\"'<>|:;,()\[\]{{}}]){_REST}"  # /...
    rf"|(?<![/\\])[/\\]+(?:home|users|scratch|lustre|gpfs|nfs)[/\\]+{_REST}"  # glued to what is before
    rf"|(?<![\w/.])(?:home|users)/{_REST}"  # without its slash, as profilers cut a search path off
)
_ROOT = r"(?:file:|[a-z]:[/\\]|[/\\]+[^/\\\s]|~[\w.-]*[/\\]|\$\{?\w+\}?[/\\]|%\w+%[/\\])"
_ABSOLUTE = re.compile(_ROOT, re.IGNORECASE)
_WHOLE = re.compile(_ROOT + r"[^:;\"\r\n]*", re.IGNORECASE)
_LIBRARY = re.compile(r"^.*?(?:/(?:site|dist)-packages/|/lib(?:64)?/python\d+(?:\.\d+)?/)")
_SOURCE_FILE = re.compile(
    r"[\w.+-]+\.(?:py|pyc|pyi|pyx|ipynb|c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hip|inl|rs|so(?:\.\d+)*|dll|ptx|cubin|metal)"
)
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)

# -- everything else ---------------------------------------------------------------------------------

# What may begin anywhere in a word must not: a long word would be looked at again from each of its letters.
_URL = re.compile(r"(?i)(?<![a-z0-9+.-])(?!file:)[a-z][a-z0-9+.-]*://(?:[^\s\"'<>|]|(?<=\w)'(?=\w))*")
_ACCOUNT = re.compile(r"(?<![\w.+'-])[\w.+'-]+@\w[\w.-]*(?:'\w[\w.-]*)*")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\w)")
_COLONS = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_AWS = re.compile(r"\bip-\d+-\d+-\d+-\d+\b")
_DOMAIN = re.compile(
    r"(?i)(?<![\w.-])(?:\w(?:[\w-]*\w)?\.)+"
    r"(?:com|org|edu|gov|mil|net|io|ai|cloud|internal|local|localdomain|lan|corp|intra|arpa|cluster|svc)(?![\w-]|\.\w)"
)
_SURE_DOMAINS = ("com", "org", "edu", "gov", "mil")
_SETTINGS = "USER|LOGNAME|USERNAME|LOGIN|HOSTNAME|HOST|COMPUTERNAME|MASTER_ADDR|SLURMD_NODENAME|SLURM_[A-Z_]*NODELIST"
_SETTING = re.compile(rf"\b(?P<key>{_SETTINGS})=(?P<value>(?:[^\s;,&\"'\\]|(?<=\w)'(?=\w))+)")
_INDUCTOR = re.compile(r"(?P<key>torchinductor_)(?P<value>[\w.-]+(?:'\w[\w.-]*)*)")
#: Without any of these a string holds nothing but words.
_SUSPECT = re.compile(r"[./\\@~$%=:]|torchinductor_|ip-\d")

#: In JSON text, in small letters: what precedes the name of a user.
_IN_HOME = re.compile(
    rb"(?<![\w.-])(?:home|users|documents and settings)(?:\\?/|\\\\)+"
    rb'(?:([^/\\"\r\n]{2,64})(?=\\?/|\\\\|")|([^/\\"\s:;,()]{2,64}))'
)
_IN_INDUCTOR = re.compile(rb"torchinductor_([\w.-]+)")
_IN_SETTING = re.compile(rb"\b(%b)=([^\s;,&\"'\\]+)" % _SETTINGS.lower().encode())
_IN_TILDE = re.compile(rb"(?<![\w/])~([a-z][\w.-]+)(?:\\?/|\\\\)")
_IN_ACCOUNT = re.compile(rb"([\w.+-]{2,64})@(?:[a-z0-9-]+\.)+[a-z]{2,}")
#: A search for a few bytes is much faster than a pattern: most text holds none of these.
_HOMES = (b"home", b"users", b"documents and settings")
_ASSIGNED = (b"user=", b"logname=", b"name=", b"login=", b"host=", b"addr=", b"nodelist=")
_HOST_SETTING = re.compile(rb"host|addr|node|computer")
_HEADER_IDENTITY = re.compile(r"(?i)host|user|node|cluster|machine|login|owner|account|job|team|oncall|entitlement")
_HEADER_HOST = re.compile(r"(?i)host|node|machine|cluster")


class Learned:
    """Names of users and hosts that a file gives away somewhere, to be replaced everywhere in it."""

    def __init__(self) -> None:
        self.users: set[str] = set()
        self.hosts: set[str] = set()

    def look(self, text: bytes) -> None:
        """Learn from JSON text."""
        text = text.lower()
        if any(word in text for word in _HOMES):
            for match in _IN_HOME.finditer(text):
                self._add(self.users, match[1] or match[2])
        for match in _IN_INDUCTOR.finditer(text):
            self._add(self.users, match[1])
        if b"~" in text:
            for match in _IN_TILDE.finditer(text):
                self._add(self.users, match[1])
        if any(word in text for word in _ASSIGNED):
            for match in _IN_SETTING.finditer(text):
                self._add(self.hosts if _HOST_SETTING.search(match[1]) else self.users, match[2])
        if b"@" in text:
            for match in _IN_ACCOUNT.finditer(text):
                self._add(self.users, match[1])

    def header(self, values: Mapping[str, Any]) -> None:
        """Learn from what stands beside the events."""
        for key, value in values.items():
            if isinstance(value, str) and _HEADER_IDENTITY.search(key):
                known = self.hosts if _HEADER_HOST.search(key) else self.users
                self._add(known, value.encode("utf-8", "replace"), escaped=False)
                if known is self.hosts and "." in value:
                    self._add(known, value.partition(".")[0].encode("utf-8", "replace"), escaped=False)

    def _add(self, known: set[str], name: bytes, escaped: bool = True) -> None:
        text = name.decode("utf-8", "replace")
        if escaped and "\\" in text:
            try:
                text = orjson.loads(b'"' + name + b'"')
            except orjson.JSONDecodeError:
                return
        text = text.strip().rstrip(".,")
        if 3 <= len(text) <= 128 and text.lower() not in rules.COMMON and not text.isdigit():
            known.add(text.lower())


def _words(words: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for whole words; letters and digits make a word, an underscore parts two."""
    some = sorted(words, key=lambda w: (-len(w), w))
    if not some:
        return None
    return re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(map(re.escape, some))})(?![^\W_])")


class Scrubber:
    """Replaces identity in events and headers of one trace.

    learned     names found in the trace, see `Learned`.
    keep        KINDS that stay as they are.
    hash_names  the user's own names are replaced too: annotations, modules, functions, process groups.
    seed        makes the replacements the same in every run; anyone who knows it can test a guess.
    removed     kind -> how many times something was replaced or left out. `mapping`: kind -> replacement
                -> what it stands for, if `remember`.
    """

    def __init__(
        self,
        learned: Learned,
        *,
        keep: Collection[str] = (),
        hash_names: bool = False,
        seed: str | None = None,
        remember: bool = False,
    ) -> None:
        self.keep = frozenset(keep)
        self.hash_names = hash_names
        self.removed: Counter[str] = Counter()
        self.mapping: dict[str, dict[str, str]] = {}
        self._remember = remember
        self._key = secrets.token_bytes(32) if seed is None else hashlib.sha256(seed.encode()).digest()
        self._users = None if "users" in self.keep else _words(learned.users)
        self._hosts = None if "hosts" in self.keep else _words(learned.hosts)
        self._cache: dict[tuple[str, str], tuple[str, Counter[str] | None]] = {}
        self._lane_names: dict[str, Any] = {}
        self._arguments: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(rules.NUMBERS, self._number),
            **dict.fromkeys(rules.SHAPES, self._shape),
            **dict.fromkeys(rules.TYPES, self._types),
            **dict.fromkeys(rules.OWN_NAMES, self._own),
            **dict.fromkeys(rules.INPUTS, self._inputs),
            **{key: self._vocabulary(key, words) for key, words in rules.WORDS.items()},
            "kernel": self._library,
            "kernel_file": self._file,
            "Call stack": self._stack,
        }

    # -- replacements ----------------------------------------------------------------------------

    def pseudonym(self, kind: str, prefix: str, value: str, length: int = 8) -> str:
        digest = hmac.new(self._key, f"{prefix}\0{value}".encode("utf-8", "replace"), "sha256").digest()
        number, out = int.from_bytes(digest[:12], "big"), []
        for _ in range(length):
            number, letter = divmod(number, 26)
            out.append(_LETTERS[letter])
        name = f"{prefix}-{''.join(out)}"
        if self._remember:
            self.mapping.setdefault(kind, {})[name] = value
        return name

    def _drop(self, kind: str, times: int = 1) -> None:
        self.removed[kind] += times

    # -- text ------------------------------------------------------------------------------------

    def text(self, value: str) -> str:
        """Any string with what is identity in it replaced."""
        return self._cached("text", value, self._scrub)

    def library(self, value: str) -> str:
        """The name of an operator, kernel or call. One of a known library is no user's name."""
        return self._cached("library", value, lambda s: self._scrub(s, rules.LIBRARY_NAME.match(s) is None))

    def own(self, value: str) -> str:
        """A name that the user has given: an annotation, a module, a process group."""
        return self._cached("own", value, self._own_name)

    def frame(self, value: str) -> str:
        """A Python frame: `file(line): function`, `nn.Module: Name_0`, `<built-in ...>`."""
        return self._cached("frame", value, self._frame_name)

    def _cached(self, how: str, value: str, make: Callable[[str], str]) -> str:
        known = self._cache.get((how, value))
        if known is None:
            if len(self._cache) >= _CACHE:
                self._cache.clear()
            before = self.removed.copy()
            result = make(value)
            found = self.removed - before if result != value else None
            self._cache[how, value] = result, found
            return result
        if known[1] is not None:
            self.removed += known[1]
        return known[0]

    def _scrub(self, value: str, words: bool = True) -> str:
        """words: also what a name of a library may hold by chance, names of users among it."""
        if _SUSPECT.search(value):
            if "hosts" not in self.keep:
                value = _URL.sub(lambda m: self._named("hosts", "url", m[0]), value)
            value = _SETTING.sub(self._setting, value)
            if words and "users" not in self.keep:  # a symbol's version: memcpy@GLIBC
                value = _ACCOUNT.sub(lambda m: self._named("users", "account", m[0]), value)
            if "paths" not in self.keep:
                whole = _WHOLE.fullmatch(value)
                value = self._short(value) if whole else _PATH.sub(lambda m: self._short(m[0]), value)
            if "users" not in self.keep:
                value = _INDUCTOR.sub(lambda m: m["key"] + self._named("users", "user", m["value"].lower()), value)
            if "hosts" not in self.keep:
                value = _IPV4.sub(self._ipv4, value)
                value = _COLONS.sub(self._ipv6, value)
                value = _AWS.sub(lambda m: self._named("hosts", "host", m[0]), value)
                value = _DOMAIN.sub(self._domain, value)
        if words:
            if self._users is not None:
                value = self._users.sub(lambda m: self._named("users", "user", m[0].lower()), value)
            if self._hosts is not None:
                value = self._hosts.sub(lambda m: self._named("hosts", "host", m[0].lower()), value)
        return value

    def _named(self, kind: str, prefix: str, value: str) -> str:
        self._drop(kind)
        return self.pseudonym(kind, prefix, value)

    def _setting(self, match: re.Match[str]) -> str:
        kind = "users" if match["key"] in ("USER", "LOGNAME", "USERNAME", "LOGIN") else "hosts"
        if kind in self.keep:
            return match[0]
        return f"{match['key']}={self._named(kind, kind.removesuffix('s'), match['value'].lower())}"

    def _ipv4(self, match: re.Match[str]) -> str:
        good = all(int(part) < 256 for part in match[0].split("."))
        return self._named("hosts", "address", match[0]) if good else match[0]

    def _ipv6(self, match: re.Match[str]) -> str:
        text = match[0]
        try:
            ipaddress.IPv6Address(text)
        except ValueError:
            if re.fullmatch(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", text) is None:
                return text
        # `add::fa` may be two C++ namespaces.
        return self._named("hosts", "address", text) if any(c.isdigit() for c in text) else text

    def _domain(self, match: re.Match[str]) -> str:
        labels = match[0].split(".")
        sure = labels[-1].lower() in _SURE_DOMAINS
        if not sure and (len(labels) < 3 or not any(c.isdigit() or c == "-" for c in match[0])):
            return match[0]  # `self.net`, `torch.local`: attributes
        return self._named("hosts", "host", match[0].lower())

    def _short(self, path: str) -> str:
        """What of a path says which file it is: from the library on, or a source file's name."""
        place = path.replace("\\", "/")
        tail = place
        while (cut := _LIBRARY.match(tail)) is not None:
            tail = "/" + tail[cut.end() :]
        self._drop("paths")
        if tail != place and tail != "/":
            return tail.lstrip("/")
        folder, _, name = place.rpartition("/")
        if _SOURCE_FILE.fullmatch(name):
            return f"{self.pseudonym('paths', 'dir', folder)}/{name}"
        return self.pseudonym("paths", "path", path)

    def _own_name(self, value: str) -> str:
        if not self.hash_names or rules.STRUCTURAL.match(value):
            return self._scrub(value)
        self._drop(NAMES)
        return self.pseudonym(NAMES, "name", value, 10)

    def _frame_name(self, value: str) -> str:
        found = _FRAME.fullmatch(value)
        if found is None:
            if self.hash_names and value.startswith("nn.Module: "):
                self._drop(NAMES)
                return "nn.Module: " + self.pseudonym(NAMES, "module", value[11:], 10)
            if self.hash_names and not value.startswith("<"):
                self._drop(NAMES)
                return self.pseudonym(NAMES, "frame", value, 10)
            return self._scrub(value)
        file = self._place(found["file"])
        if self.hash_names and not rules.PUBLIC.match(file):
            self._drop(NAMES)
            return f"{self.pseudonym(NAMES, 'file', file, 10)}({found['line']}): " + self.pseudonym(
                NAMES, "function", found["function"], 10
            )
        return f"{file}({found['line']}): {self._scrub(found['function'])}"

    def _place(self, value: str) -> str:
        """A string that is a path and nothing else, whatever its folders are called."""
        if "paths" not in self.keep and _ABSOLUTE.match(value):
            value = self._short(value)
        return self._scrub(value)

    def _word(self, kind: str, prefix: str, value: str, words: re.Pattern[str]) -> str:
        """A string where only certain words are expected."""
        if kind in self.keep:
            return self.text(value)
        return value if words.fullmatch(value) else self._named(kind, prefix, value)

    # -- values of arguments ---------------------------------------------------------------------

    def _number(self, value: Any) -> Any:
        """Numbers, also as text and in lists; `_GONE` for anything else."""
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return value if len(value) < 1 << 16 and rules.NUMERIC.fullmatch(value) else self._gone()
        if isinstance(value, list):
            return [v for v in map(self._number, value) if v is not _GONE]
        return self._gone()

    def _gone(self) -> Any:
        self._drop("args")
        return _GONE

    def _shape(self, value: Any) -> Any:
        """Nested lists of numbers. Text that is no number becomes empty, so that positions stay."""
        if isinstance(value, list):
            return [self._shape(v) for v in value]
        if isinstance(value, str) and value:
            kept = self._number(value)
            return "" if kept is _GONE else kept
        if value is None or isinstance(value, int | float | str):
            return value
        self._drop("args")
        return None

    def _types(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._types(v) for v in value]
        if isinstance(value, str):
            return self._word("args", "type", value, rules.TYPE)
        return value if value is None or isinstance(value, int | float) else None

    def _vocabulary(self, key: str, words: re.Pattern[str]) -> Callable[[Any], Any]:
        prefix = re.sub(r"[^a-z]+", "-", key.lower()).strip("-")

        def rule(value: Any) -> Any:
            return self._word("args", prefix, value, words) if isinstance(value, str) else self._number(value)

        return rule

    def _library(self, value: Any) -> Any:
        return self.library(value) if isinstance(value, str) else self._number(value)

    def _own(self, value: Any) -> Any:
        return self.own(value) if isinstance(value, str) else self._number(value)

    def _file(self, value: Any) -> Any:
        return self._cached("file", value, self._place) if isinstance(value, str) else self._gone()

    def _stack(self, value: Any) -> Any:
        return ";".join(map(self.frame, value.split(";"))) if isinstance(value, str) else self._gone()

    def _inputs(self, value: Any) -> Any:
        if "inputs" in self.keep:
            return self._anything(value)
        self._drop("inputs")
        return _GONE

    def _anything(self, value: Any) -> Any:
        """A value of unknown shape that is to stay, with what is identity in its text replaced."""
        if isinstance(value, str):
            return self.own(value)
        if isinstance(value, list):
            return [self._anything(v) for v in value]
        if isinstance(value, dict):
            return {self.own(k): self._anything(v) for k, v in value.items()}
        return value

    # -- events ----------------------------------------------------------------------------------

    def event(self, e: Any) -> Any:
        """An element of the list of events, scrubbed; None: it is left out."""
        if type(e) is not dict:
            if isinstance(e, str | list):
                self._drop("args")
                return None
            return e
        phase = e.get("ph")
        if "ph" in e and not (type(phase) is str and len(phase) == 1):
            self._drop("args")
            return None
        if phase == "M":
            return self._metadata(e)
        cat = e.get("cat")
        out: Event = {}
        for key, value in e.items():
            if key == "args":
                continue
            if key == "name":
                out[key] = self._event_name(cat, value)
            elif key == "pid" or key == "tid":
                out[key] = value if type(value) is int else self._lane(value)
            elif key == "ts" or key == "dur" or key == "tts" or key == "tdur":
                if type(value) is not str or rules.TIME.fullmatch(value):
                    out[key] = value
            elif key == "ph":
                out[key] = value
            elif key == "cat":
                out[key] = value if type(value) is str and value in CODES else self._category(value)
            elif key == "id" or key == "bind_id":
                out[key] = self._ident(value)
            elif key in ("bp", "s", "flow_in", "flow_out"):
                if type(value) is bool or (type(value) is str and len(value) == 1):
                    out[key] = value
            elif "args" in self.keep:
                out[self.own(key)] = self._anything(value)
            else:
                self._drop("args")
        if "args" in e:
            args = e["args"]
            out["args"] = self._args(args, phase, cat) if type(args) is dict else None
        return out

    def _event_name(self, cat: Any, name: Any) -> Any:
        if type(name) is not str:
            return name if name is None or isinstance(name, int | float) else None
        code = CATEGORIES.get(cat) if type(cat) is str else None
        if code is Cat.PYTHON:
            return self.frame(name)
        known = type(cat) is str and cat in CODES and cat not in ("user_annotation", "gpu_user_annotation", "nvtx")
        if not known and cat is not None:
            return self.own(name)
        return self.library(name)

    def _category(self, cat: Any) -> Any:
        return self.text(cat) if type(cat) is str else None

    def _ident(self, value: Any) -> Any:
        if isinstance(value, str) and rules.NUMERIC.fullmatch(value) is None:
            return self._named("ids", "id", value)
        return value if isinstance(value, int | float | str) else None

    def _args(self, args: Event, phase: Any, cat: Any) -> Event:
        out: Event = {}
        known = self._arguments
        for key, value in args.items():
            rule = known.get(key)
            if rule is not None:
                kept = rule(value)
                if kept is not _GONE:
                    out[key] = kept
            elif phase == "C" or (cat == "cuda_profiler_range" and rules.METRIC.fullmatch(key)):
                kept = self._number(value)
                if kept is not _GONE:
                    out[self.own(key)] = kept
            elif "args" in self.keep:
                out[self.own(key)] = self._anything(value)
            else:
                self._drop("args")
        return out

    def _lane(self, value: Any) -> Any:
        """A pid or tid that is text. Its last number stays: it is a device's or a stream's."""
        if not isinstance(value, str):
            return value if value is None or isinstance(value, float | bool) else None
        known = self._lane_names.get(value)
        if known is None:
            known = self._word("processes", "lane", value, rules.LANE)
            if known != value and "processes" not in self.keep and (number := last_number(value)) is not None:
                known = f"{known} {number}"
            if len(self._lane_names) < _CACHE:
                self._lane_names[value] = known
        return known

    def _metadata(self, e: Event) -> Any:
        """Names and labels of processes and threads."""
        name, args = e.get("name"), e.get("args")
        if name not in rules.METADATA:
            self._drop("processes")
            return None
        out: Event = {"ph": "M", "name": name}
        for key in ("pid", "tid"):
            if key in e:
                out[key] = e[key] if type(e[key]) is int else self._lane(e[key])
        if isinstance(ts := e.get("ts"), int | float) or (isinstance(ts, str) and rules.TIME.fullmatch(ts)):
            out["ts"] = ts
        given = args if type(args) is dict else {}
        inner: Event = {}
        for key, value in given.items():
            if key == "sort_index":
                if (kept := self._number(value)) is not _GONE:
                    inner[key] = kept
            elif key in ("name", "labels") and isinstance(value, str):
                inner[key] = self._title(name, value)
            else:
                self._drop("args")
        out["args"] = inner
        return out

    def _title(self, what: str, value: str) -> str:
        if what == "thread_name":
            numbered = rules.NUMBERED_THREAD.fullmatch(value)
            if numbered is not None:
                inner = self._word("processes", "thread", numbered["name"], rules.THREAD)
                return f"thread {numbered['number']} ({inner})"
            new = self._word("processes", "thread", value, rules.THREAD)
            stream = rules.JAX_STREAM.match(value)
            return f"{stream[0]}({new})" if stream and new != value else new
        if what == "process_labels":
            return self._word("processes", "label", value, rules.LABEL)
        new = self._word("processes", "process", value, rules.PROCESS)
        lane = rules.JAX_LANE.search(value)
        if lane is None or new == value or "processes" in self.keep:
            return new
        # What a reader tells a device by stays, at the front if it was there.
        return f"{lane[0]} {new}" if lane.start() == 0 else f"{new}{lane[0]}"

    # -- beside the events -----------------------------------------------------------------------

    def header(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Members of the top object."""
        out: dict[str, Any] = {}
        for key, value in values.items():
            kind, kept = self._member(key, value)
            if kept is not _GONE:
                out[key if kind != "header" else self.own(key)] = kept
            elif kind in self.keep:
                out[self.own(key)] = self._anything(value)
            else:
                self._drop(kind)
        return out

    def _member(self, key: str, value: Any) -> tuple[str, Any]:
        """(kind that it falls under, what stays of it)."""
        if key in rules.HEADER_NUMBERS or rules.HEADER_VERSION.fullmatch(key):
            good = isinstance(value, int | float) or (isinstance(value, str) and rules.VERSION.fullmatch(value))
            return "args", value if good else _GONE
        if key == "displayTimeUnit":
            return "args", value if value in ("ms", "ns") else _GONE
        if key == "deviceProperties":
            return "args", [self._device(d) for d in value if isinstance(d, dict)] if isinstance(value, list) else _GONE
        if key == "distributedInfo":
            return "args", self._distributed(value) if isinstance(value, dict) else _GONE
        if key == "tracecli_capture":
            return "args", self._stamp(value) if isinstance(value, dict) else _GONE
        if key in rules.MARKERS:  # that they are there says who wrote the file
            return "args", rules.MARKERS[key]
        if key in ("host_name", "hostname", "username") and isinstance(value, str) and value:
            kind = "users" if key == "username" else "hosts"
            if kind in self.keep or value.lower() in rules.COMMON:
                return kind, value
            return kind, self._named(kind, kind.removesuffix("s"), value.lower())
        return "ids" if key in rules.IDS or key.startswith("tw_") else "header", _GONE

    def _device(self, device: Event) -> Event:
        out: Event = {}
        for key, value in device.items():
            if key == "name" and isinstance(value, str):
                out[key] = self.text(value)
            elif key in rules.DEVICE and isinstance(value, int | float):
                out[key] = value
            else:
                self._drop("args")
        return out

    def _distributed(self, value: Event) -> Event:
        out: Event = {}
        for key, inner in value.items():
            kept: Any = _GONE
            if key in rules.DISTRIBUTED_NUMBERS:
                kept = self._number(inner)
            elif key in ("backend", "backend_config") and isinstance(inner, str):
                kept = self._word("args", "backend", inner, rules.BACKEND)
            elif key in ("pg_name", "pg_desc") and isinstance(inner, str):
                kept = self.own(inner)
            elif key == "pg_config" and isinstance(inner, list):
                kept = [self._distributed(group) for group in inner if isinstance(group, dict)]
            elif key == "nccl_version" and isinstance(inner, str) and rules.VERSION.fullmatch(inner):
                kept = inner
            if kept is _GONE:
                self._drop("hosts")
            else:
                out[key] = kept
        return out

    def _stamp(self, value: Event) -> Event:
        """What `capture` has written; its words are ours, or a scenario's flags."""
        out: Event = {}
        for key, inner in value.items():
            if key not in rules.STAMP:
                self._drop("header")
            elif key == "flags":
                flags = inner if isinstance(inner, dict) else {}
                out[key] = {self.text(k): self._flag(v) for k, v in flags.items()}
            else:
                out[key] = self._flag(inner)
        return out

    def _flag(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [v for v in value if v is None or isinstance(v, int | float)]
        return value if value is None or isinstance(value, int | float) else None


#: Stands for a value that is left out.
_GONE: Any = object()
