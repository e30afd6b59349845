"""The manifest of recordings: one entry a name, and judgements that outlive a recording."""

import importlib.util
import json
from pathlib import Path

import pytest

_FILE = Path(__file__).resolve().parents[2] / "capture" / "scenarios" / "manifest.py"


@pytest.fixture(scope="module")
def manifest():
    """The module alone: its package needs torch, and it does not."""
    spec = importlib.util.spec_from_file_location("manifest", _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entry(size):
    return {"file": "a.json.gz", "bytes": size, "differs": []}


def test_a_name_has_one_entry_whatever_became_of_it(tmp_path, manifest):
    manifest.put(tmp_path, "failed", "a", "took more than 180 s")
    manifest.put(tmp_path, "fixtures", "a", entry(5))
    manifest.put(tmp_path, "fixtures", "b", entry(7))
    found = manifest.read(tmp_path)
    assert (list(found["fixtures"]), found["failed"], found["total_bytes"]) == (["a", "b"], {}, 12)


def test_what_an_expert_said_of_a_fixture_is_kept_when_it_is_recorded_anew(tmp_path, manifest):
    manifest.put(tmp_path, "fixtures", "a", entry(5))
    said = {"a": {"must": ["cold-start"], "notes": [], "why": "it starts"}}
    path = tmp_path / manifest.NAME
    path.write_text(json.dumps({**manifest.read(tmp_path), "findings": said}))
    for kind, what in (("fixtures", entry(9)), ("failed", "no device"), ("fixtures", entry(4))):
        manifest.put(tmp_path, kind, "a", what)
        assert manifest.read(tmp_path)["findings"] == said


def test_a_new_recording_has_not_been_judged(tmp_path, manifest):
    manifest.put(tmp_path, "fixtures", "a", entry(5))
    assert manifest.read(tmp_path)["findings"] == {}
