"""Scrubbing takes names of machines and folders, and nothing else."""

import gzip
import json

import pytest

pytest.importorskip("torch", reason="the recording module imports torch")

from hypothesis import given
from hypothesis import strategies as st

from capture.scrub import scrub_file, scrub_text, shorten


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/root/x/lib/python3.12/site-packages/torch/nn/modules/module.py", "torch/nn/modules/module.py"),
        ("/usr/lib/python3.12/threading.py", "threading.py"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "numpy/core.py"),
        ("/home/me/project/train.py", "train.py"),
        ("C:\\Users\\me\\project\\train.py", "train.py"),
    ],
)
def test_the_tail_that_says_which_file_it_is_stays(before, after):
    assert shorten(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/root/lib/python3.12/site-packages/torch/nn/m.py(123): forward", "torch/nn/m.py(123): forward"),
        ("torch/nn/modules/module.py(12): _call_impl", "torch/nn/modules/module.py(12): _call_impl"),
        ("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0"),
        ("void k<float, 4>(a / b)", "void k<float, 4>(a / b)"),
        ("/tmp/torchinductor_me/ab/cabc.py", "cabc.py"),
        ("at /home/me/a.py and /home/me/b.py", "at a.py and b.py"),
        ("big-server-7: rank 0", "host: rank 0"),
        ("C:\\Users\\me\\a.py", "a.py"),
        ("https://example.org/a/b", "https://example.org/a/b"),
    ],
)
def test_strings(before, after):
    text = json.dumps({"name": before, "ts": 1.500})
    assert json.loads(scrub_text(text, ["big-server-7"])) == {"name": after, "ts": 1.5}


def test_no_figure_is_written_anew():
    text = '{"ts": 5436893764.120, "dur": 1e-3, "big": 18446744073709551615, "name": "/home/me/a.py(1): f"}'
    assert scrub_text(text) == text.replace("/home/me/", "")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def shape(value):
    """All but the texts."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return [shape(v) for v in value]
    if isinstance(value, dict):
        return [shape(v) for v in value.values()]
    return value


@given(values)
def test_whatever_the_texts_the_rest_stays(value):
    # Keys become distinct numbers, so that scrubbing cannot make two of them one.
    def renamed(v):
        if isinstance(v, dict):
            return {str(n): renamed(inner) for n, inner in enumerate(v.values())}
        return [renamed(inner) for inner in v] if isinstance(v, list) else v

    value = renamed(value)
    assert shape(json.loads(scrub_text(json.dumps(value), ["host-name"]))) == shape(value)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_files_in_place(tmp_path, name):
    path = tmp_path / name
    data = json.dumps({"traceEvents": [{"name": "/home/me/a.py(1): f", "ts": 1}]}).encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    scrub_file(path)
    clean = path.read_bytes()
    clean = gzip.decompress(clean) if name.endswith("gz") else clean
    assert json.loads(clean) == {"traceEvents": [{"name": "a.py(1): f", "ts": 1}]}
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_bytes_that_are_no_text_pass_through(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b'{"name": "\xff /home/me/a.py"}')
    scrub_file(path)
    assert path.read_bytes() == b'{"name": "\xff a.py"}'
