"""How fast a trace is read, against bare parsers of JSON on the same file in the same run.

    python -m tests.benchmarks TRACE [--times 4] [--repeat 3] [--all]

Rows: orjson.loads and json.load (they only parse, cycle collection off), `read`, the whole `tracecli
analyze --format json`. `--times N` adds the same events N times over; `--all` adds the file on one
line and packed by gzip. Wall times are medians; ratios are to orjson.loads on the same text.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks import variants
from tests.benchmarks.measure import Run, python, run

_ORJSON = "import orjson\ngc.disable()\n# timed\nd = orjson.loads(open(sys.argv[1], 'rb').read())\n"
_JSON = "import json\ngc.disable()\n# timed\nd = json.load(open(sys.argv[1], encoding='utf-8'))\n"
_READ = (
    "# timed\nfrom analyzer.sources.kineto.read import read\n"
    "trace = read(sys.argv[1], jobs=int(sys.argv[2]) if sys.argv[2:] else None)\nprint(f'events={trace.events}')\n"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--times", type=int, default=1, help="also the events this many times over")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="also on one line, and packed")
    parser.add_argument("--no-json", action="store_true", help="leave out json.load, which is slow")
    options = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {sys.platform}, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(prefix="tracecli-bench-") as folder:
        here = Path(folder)
        text = variants.plain(options.trace, here / "plain.json")
        per_event = table("the file", text, options)
        if options.all:
            table("on one line", variants.single_line(text, here / "line.json"), options)
            table("packed", variants.packed(text, here / "packed.json.gz"), options)
        if options.times > 1:
            many = variants.repeated(text, here / "many.json", options.times)
            more = table(f"{options.times} times over", many, options)
            print("\ntime per event against the single file:")
            for name in per_event.keys() & more.keys():
                print(f"{name:34}{more[name] / per_event[name]:9.2f}")
    return 0


def table(title: str, path: Path, options: argparse.Namespace) -> dict[str, float]:
    """Print the figures of one file; the seconds per event of every row."""
    print(f"\n{title}: {path.stat().st_size / 1e6:,.1f} MB")
    print(f"{'':34}{'seconds':>9}{'ratio':>8}{'peak MB':>9}{'MB/s':>8}{'µs/event':>10}")
    rows: dict[str, list[str]] = {}
    if path.suffix != ".gz":
        rows["orjson.loads"] = python(_ORJSON, str(path))
        if not options.no_json:
            rows["json.load"] = python(_JSON, str(path))
    rows["read"] = python(_READ, str(path))
    rows["read, one process"] = python(_READ, str(path), "1")
    command = shutil.which("tracecli", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if command is not None:
        rows["tracecli analyze --format json"] = [command, "analyze", str(path), "--format", "json"]
    results: dict[str, list[Run]] = {name: [] for name in rows}
    for _ in range(options.repeat):  # in turn, so that a busy moment hits all alike
        for name, line in rows.items():
            try:
                results[name].append(run(line))
            except subprocess.CalledProcessError as error:
                print(f"{name}: failed: {(error.stderr or '').strip().splitlines()[-1:]}")
    events = next(int(r.output.partition("events=")[2].split()[0]) for r in results["read"])
    base = statistics.median(r.seconds for r in results["orjson.loads"]) if "orjson.loads" in results else None
    per_event = {}
    for name, runs in results.items():
        if not runs:
            continue
        seconds = statistics.median(r.seconds for r in runs)
        peak = max(r.peak_bytes for r in runs) / 1e6
        ratio = f"{seconds / base:.2f}" if base else ""
        speed = path.stat().st_size / seconds / 1e6
        per_event[name] = seconds / events
        print(f"{name:34}{seconds:9.2f}{ratio:>8}{peak:9,.0f}{speed:8,.0f}{seconds / events * 1e6:10.2f}")
    return per_event


if __name__ == "__main__":
    sys.exit(main())
