"""Takes out of any text what is not known to be public.

A text is read once from left to right. Addresses, accounts, settings, paths and names of machines are replaced
as a whole, whatever they consist of; of what is left, every identifier stays that is `known`, and every other
becomes a stable word (`fn_3`, `host_1`). Numbers and ASCII punctuation stay. A name whose class the analyzer reads
from it keeps that class: it is asked before and after.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from analyzer.redact.classes import candidates, class_of, engine, engine_words, likeness
from analyzer.redact.words import _PART, PACKAGES, known, machine, mangled, parts, public, words

#: What a name is of -> the word that stands for it where it is not known.
WORDS = {"op": "op", "kernel": "kernel", "call": "call", "annotation": "fn", "frame": "fn", "module": "module",
         "group": "group", "text": "name"}  # fmt: skip
_MOST = 1 << 16
#: Letters of a name whose class is looked for; C++ writes some of a few thousand.
_LONGEST = 1 << 14

# What may begin anywhere in a run must not: a long run would be looked at again from each of its letters.
_PIECE = re.compile(
    r"""(?xi)
    (?P<url> (?<![a-z0-9+.-]) (?!file:) [a-z][a-z0-9+.-]* :// [^\s"<>|]+ )
  | (?P<account> (?<![\w.+@'-]) [\w.+'-]+ @ \w [^\s",;()<>\[\]]* )
  | (?P<setting> (?<![\w]) (?-i:[A-Z][A-Z0-9_]{2,}) = [^\s;,&"]+ )
  | (?P<path> (?: (?<!\w) [a-z]: (?=[/\\]) | (?<![^\s"<>|,;:()=]) [^\s"<>|,;:()=/\\]* ) [/\\] [^\s"<>|,;:()]* )
  | (?P<mac> (?<![0-9a-f]) (?:[0-9a-f]{2}[:-]){5} [0-9a-f]{2} (?![0-9a-f]) )
  | (?P<ipv6> (?<![\w:.]) (?=[0-9a-f:]*\d) [0-9a-f]{0,4} (?: : [0-9a-f]{0,4} ){2,7} (?![\w:]) )
  | (?P<ipv4> (?<!\d) (?<!\d\.) (?:\d{1,3}\.){3} \d{1,3} (?!\d) )
  | (?P<port> (?<![\w-]) [a-z] (?=[\w-]{0,62}\d) [\w-]{1,62} : \d{2,5} (?!\w) )
  | (?P<dotted> (?<![\w\u0080-\U0010ffff.-]) [\w\u0080-\U0010ffff-]+ (?: \. [\w\u0080-\U0010ffff-]+ )+ )
  | (?P<word> [\w\u0080-\U0010ffff]+ )
    """
)
_LIBRARY = re.compile(r"^.*?(?:/(?:site|dist)-packages/|/lib(?:64)?/python\d+(?:\.\d+)?/)")
_ABSOLUTE = re.compile(r"(?i)file:|[a-z]:/|/|~|\$|%|-")
_SOURCE = re.compile(
    r"(?P<stem>.+)\.(?P<ending>py|pyc|pyi|pyx|ipynb|c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hip|inl|rs|so|dll|ptx|cubin|metal)"
)
#: Where Inductor writes the code that it makes, by the name of whoever runs it.
_GENERATED = re.compile(r"/torchinductor_(?P<user>\w+)/")
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>-?\d+)\): (?P<function>.*)", re.DOTALL)
_MODULE = re.compile(r"nn\.Module: (?P<name>.*?)(?P<number>_\d+)?", re.DOTALL)
#: The last label of a host's name, where it is longer than two letters.
_COUNTRY = frozenset(
    [
        "de",
        "uk",
        "fr",
        "ch",
        "at",
        "nl",
        "se",
        "no",
        "dk",
        "fi",
        "pl",
        "cz",
        "es",
        "pt",
        "it",
        "be",
        "ie",
        "jp",
        "cn",
        "kr",
        "tw",
        "in",
        "sg",
        "au",
        "nz",
        "ca",
        "us",
        "br",
        "mx",
        "il",
        "ru",
        "ua",
        "eu",
    ]
)
_TOP = frozenset(
    [
        "com",
        "org",
        "edu",
        "gov",
        "mil",
        "net",
        "int",
        "io",
        "ai",
        "cloud",
        "internal",
        "local",
        "localdomain",
        "lan",
        "corp",
        "intra",
        "arpa",
        "cluster",
        "svc",
    ]
)
_ADDRESS = re.compile(r"(?<!\d)(?:\d{1,3}\.){3}\d{1,3}(?!\d)")
_NUMBER = re.compile(r"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?")


class Words:
    """Stable words for names: equal names get equal words, numbered in the order in which they come.

    mapping  kind -> word -> what it stands for. Give that of an earlier run to go on with its words.
    """

    def __init__(self, mapping: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.mapping: dict[str, dict[str, str]] = {kind: dict(known) for kind, known in (mapping or {}).items()}
        self._words = {
            (kind, word.rpartition("_")[0], value): word
            for kind, known in self.mapping.items()
            for word, value in known.items()
        }
        self._last: Counter[str] = Counter(prefix for _, prefix, _ in self._words)

    def word(self, kind: str, prefix: str, value: str, letters: bool = False) -> str:
        """letters: numbered by letters, where readers take numbers out of names."""
        known = self._words.get((kind, prefix, value))
        if known is None:
            self._last[prefix] += 1
            number = self._last[prefix]
            known = self._words[kind, prefix, value] = f"{prefix}_{_letters(number) if letters else number}"
            self.mapping.setdefault(kind, {})[known] = value
        return known


def _letters(number: int) -> str:
    out = ""
    while number:
        number, rest = divmod(number - 1, 26)
        out = chr(ord("a") + rest) + out
    return out


class Names:
    """Replaces in texts what is not public. keep: kinds that stay; removed: kind -> times."""

    def __init__(self, known_words: Words, keep: Collection[str] = ()) -> None:
        self.words = known_words
        self.keep = frozenset(keep)
        self.removed: Counter[str] = Counter()
        #: Own names that stay, since all of their words are public.
        self.stayed: dict[str, None] = {}
        self._cache: dict[tuple[str, str], tuple[str, Counter[str]]] = {}
        self._what = "text"
        self._soft = False  # known words inside of unknown names stay
        self._engine = False  # the name is one that an inference engine gives its steps

    def clean(self, what: str, value: str) -> str:
        """A text with everything replaced that is not known. what: one of WORDS."""
        found = self._cache.get((what, value))
        if found is None:
            if len(self._cache) >= _MOST:
                self._cache.clear()
            before = self.removed.copy()
            new = self._frame(value) if what == "frame" else self._kept_class(what, value)
            found = self._cache[what, value] = new, self.removed - before
            if new == value and what in ("annotation", "module"):
                self.stayed[value] = None
            return new
        self.removed += found[1]
        return found[0]

    def path(self, value: str) -> str:
        """A text that is a path and nothing else, whatever its folders are called."""
        return value if "paths" in self.keep else self._short(value)

    def replaced(self, kind: str, prefix: str, value: str, letters: bool = False) -> str:
        self.removed[kind] += 1
        return self.words.word(kind, prefix, value, letters)

    # -- a text ----------------------------------------------------------------------------------

    def _frame(self, value: str) -> str:
        """A Python frame: `file(line): function`, `nn.Module: Name_0`, `<built-in ...>`."""
        if module := _MODULE.fullmatch(value):
            return f"nn.Module: {self._text('module', module['name'])}{module['number'] or ''}"
        frame = _FRAME.fullmatch(value)
        if frame is None:
            return self._kept_class("frame", value)
        file = frame["file"]
        file = self.path(file) if "/" in file or "\\" in file else self._file(file)
        function = f"({frame['line']}): {self._text('frame', frame['function'])}"
        new, wanted = file + function, class_of("frame", value)
        if class_of("frame", new) != wanted:
            # A package that lies in somebody's folder: where in it the file is says what it does.
            inside = self._in_package(frame["file"]) + function
            new = inside if class_of("frame", inside) == wanted else self._with_class("frame", value, new)
        return new

    def _kept_class(self, what: str, value: str) -> str:
        self._engine = len(value) <= _LONGEST and bool(engine(what, value))
        try:
            new = self._text(what, value)
        finally:
            self._engine = False
        if new == value or len(value) > _LONGEST or class_of(what, new) == class_of(what, value):
            return new
        return self._with_class(what, value, new)

    def _with_class(self, what: str, value: str, new: str) -> str:
        """A name that says of what class it is, where what was replaced said so."""
        wanted = class_of(what, value)
        self._soft = True
        try:
            soft = self._text(what, value)
        finally:
            self._soft = False
        best, most = new, likeness(class_of(what, new), wanted)
        for candidate in (soft, *candidates(what, wanted, new, lambda: self.words.word("names", WORDS[what], value))):
            like = likeness(class_of(what, candidate), wanted)
            if like == len(wanted):
                return candidate
            if like > most:
                best, most = candidate, like
        return best

    def _text(self, what: str, value: str) -> str:
        self._what, before = what, self._what
        try:
            return _PIECE.sub(self._piece, value)
        finally:
            self._what = before

    def _piece(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        assert kind is not None
        return self._RULES[kind](self, match[0])

    def _word(self, value: str) -> str:
        if known(value):
            return value
        if machine(value):
            return value if "hosts" in self.keep else self.replaced("hosts", "host", value)
        if value.startswith("torchinductor_"):
            return value if "users" in self.keep else "torchinductor_" + self.replaced("users", "user", value[14:])
        if "names" in self.keep:
            return value
        if value.startswith("_Z") and value.isascii():
            whole = mangled(value, self._word)
            if whole is not None:
                return whole
        if self._engine and all(part.lower() in engine_words() for part in parts(value)):
            return value  # sizes of the batch, as the engine's own names have them: sq32sk4096
        new = self.replaced("names", WORDS[self._what], value)
        return self._partly(value, new) if self._soft else new

    @staticmethod
    def _partly(value: str, new: str) -> str:
        """An unknown identifier in which the known words stay, and `new` stands for the first other."""
        left = [new]
        if "_" in value.strip("_"):
            pieces = value.split("_")
            return "_".join(p if known(p) else left.pop() if left else "x" for p in pieces)
        return _PART.sub(lambda m: m[0] if m[0].lower() in words() else left.pop() if left else "", value)

    def _dotted(self, value: str) -> str:
        labels = value.split(".")
        if _ADDRESS.search(value):
            return self._ipv4(value)
        last = labels[-1].lower()
        country = len(labels) > 2 and last in _COUNTRY
        if _NUMBER.fullmatch(value) or (not country and all(map(known, labels))):
            return value
        if country or last in _TOP or last in _COUNTRY or any("-" in label or machine(label) for label in labels):
            return value if "hosts" in self.keep else self.replaced("hosts", "host", value)
        if "names" in self.keep:
            return value
        return ".".join("-".join(map(self._word, label.split("-"))) for label in labels)

    def _setting(self, value: str) -> str:
        key, _, inner = value.partition("=")
        if _NUMBER.fullmatch(inner) or inner in ("True", "False", "true", "false", "None"):
            return f"{self._word(key)}={inner}"
        kind = "hosts" if re.search(r"HOST|NODE|ADDR|MACHINE|COMPUTER", key) else "users"
        return value if kind in self.keep else f"{self._word(key)}={self.replaced(kind, kind.removesuffix('s'), inner)}"

    def _ipv4(self, value: str) -> str:
        """An address, and what is glued to it."""
        found = _ADDRESS.search(value)
        good = found is not None and all(int(part) < 256 for part in found[0].split("."))
        return self._whole("hosts", "address", value) if good else value

    def _ipv6(self, value: str) -> str:
        return self._whole("hosts", "address", value) if value.strip(":") else value

    def _whole(self, kind: str, prefix: str, value: str) -> str:
        return value if kind in self.keep else self.replaced(kind, prefix, value)

    # -- paths -----------------------------------------------------------------------------------

    def _path(self, value: str) -> str:
        if "paths" in self.keep or re.search(r"\w", value) is None:
            return value
        # `0/1`, `forward/backward`: words with a slash between them.
        pieces = re.split(r"[/\\]", value)
        if not _ABSOLUTE.match(value) and "\\" not in value and all(p and public(p) for p in pieces):
            return value
        return self._short(value)

    def _short(self, path: str) -> str:
        """What of a path is public: from the library on, and the name of a source file."""
        place = path.replace("\\", "/")
        tail = place
        while (cut := _LIBRARY.match(tail)) is not None:
            tail = "/" + tail[cut.end() :]
        inside = tail != place
        tail = tail.lstrip("/") if inside else tail
        folder, _, file = tail.rpartition("/")
        own = folder.split("/") if folder else []
        if own and own[0] in PACKAGES and all(map(known, own)):
            return "/".join([*own, self._file(file)])
        if (inside or not _ABSOLUTE.match(tail)) and all(p and public(p) for p in own):
            if inside:
                self.removed["paths"] += 1
            return "/".join([*own, self._file(file)])
        self.removed["paths"] += 1
        if generated := _GENERATED.search(place):
            user = self.words.word("users", "user", generated["user"])
            return f"{self.words.word('paths', 'dir', folder)}/torchinductor_{user}/{self._file(file)}"
        if inside:
            return "/".join([*(p if public(p) else self.words.word("paths", "dir", p) for p in own), self._file(file)])
        if _SOURCE.fullmatch(file):
            return f"{self.words.word('paths', 'dir', folder)}/{self._file(file)}"
        return self.words.word("paths", "path", place)

    def _in_package(self, path: str) -> str:
        """A path from a public package's folder on, if all that follows is public, too; else as it is shown."""
        folder, _, file = path.replace("\\", "/").rpartition("/")
        own = folder.split("/")
        for i in range(len(own) - 1, 0, -1):
            if own[i] in PACKAGES and all(map(public, own[i + 1 :])):
                return "/".join([self.words.word("paths", "dir", "/".join(own[:i])), *own[i:], self._file(file)])
        return self.path(path)

    def _file(self, file: str) -> str:
        source = _SOURCE.fullmatch(file)
        if source is None:
            return self._text("text", file)
        if known(source["stem"].replace("-", "_")) or "names" in self.keep or source["stem"].startswith("<"):
            return file
        return f"{self.replaced('names', 'file', source['stem'])}.{source['ending']}"

    _RULES: Mapping[str, Callable[[Names, str], str]] = {
        "url": lambda self, value: self._whole("hosts", "url", value),
        "account": lambda self, value: self._whole("users", "account", value),
        "mac": lambda self, value: self._whole("hosts", "address", value),
        "port": lambda self, value: self._whole("hosts", "host", value),
        "setting": _setting,
        "path": _path,
        "ipv6": _ipv6,
        "ipv4": _ipv4,
        "dotted": _dotted,
        "word": _word,
    }
