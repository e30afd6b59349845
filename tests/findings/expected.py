"""What findings each fixture must show, by its manifest, against what it shows.

    python -m tests.findings.expected [FIXTURE ..]

prints the differences, and ends with 1 if there are any. Nothing is written: whoever changes what is found reads each
finding, asks whether an expert would say it, and edits `findings` in fixtures/MANIFEST.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from analyzer.report.findings import Finding, Severity
from tests.recorded import FINDINGS, NAMES, report_of


def shown(name: str) -> dict[str, list[Finding]]:
    """The findings of a fixture in the report's order, as the manifest groups them."""
    findings = report_of(name).findings
    return {
        "must": [f for f in findings if f.severity is not Severity.NOTE],
        "notes": [f for f in findings if f.severity is Severity.NOTE],
    }


def all_of(finding: Finding) -> str:
    """All that a finding says."""
    return "\n".join((finding.title, *finding.evidence, finding.advice))


def differences(name: str) -> list[str]:
    """A line for each finding that came or went, and one if only their order is another."""
    out = []
    for group, found in shown(name).items():
        want, got = list(FINDINGS[name][group]), [f.name for f in found]
        if want == got:
            continue
        came, went = list(found), []
        for each in want:
            same = next((f for f in came if f.name == each), None)
            came.remove(same) if same else went.append(each)
        out += [f"{group}: no longer {each}" for each in went]
        out += [f"{group}: now {f.name} ({f.severity.value}): {f.title}" for f in came]
        if not came and not went:
            out.append(f"{group}: in another order")
        out.append(f'  "{group}": {json.dumps(got)}')
    return out


def main(names: Sequence[str]) -> int:
    differ = 0
    for name in names or NAMES:
        lines = differences(name)
        if lines:
            differ += 1
            sys.stdout.write("\n    ".join([f"{name}: {FINDINGS[name]['why']}", *lines]) + "\n")
    sys.stdout.write(f"{len(names or NAMES)} fixtures, {differ} differ\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
