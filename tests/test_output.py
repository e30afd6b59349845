"""The writer: whole or not at all, through links, straight to devices, never over what was not meant."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.output import Output

posix = pytest.mark.skipif(os.name != "posix", reason="no devices, pipes and modes of that kind here")


def write(path: Path, content: bytes = b"new", **options) -> Output:
    output = Output(path, **options)
    with output.open() as file:
        file.write(content)
    return output


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def powerless() -> Iterator[Path]:
    """A folder, and this process without root's rights to do everything in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        if root:
            os.chown(folder, 65534, -1)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)


# -- regular files ---------------------------------------------------------------------------------------------------


def test_a_new_file_is_whole_alone_and_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        output = write(tmp_path / "a.json", b"12345")
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").read_bytes() == b"12345"
    assert output.size == 5
    assert names(tmp_path) == {"a.json"}
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


def test_checking_leaves_nothing(tmp_path):
    Output(tmp_path / "a.json")
    assert names(tmp_path) == set()


def test_a_file_is_replaced_only_with_force(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with pytest.raises(TraceError, match="--force"):
        Output(path)
    write(path, force=True)
    assert path.read_bytes() == b"new"


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a.json"
    output = Output(path)
    with pytest.raises(TraceError, match="--force"), output.open() as file:  # noqa: PT012
        file.write(b"new")
        path.write_bytes(b"another's")
    assert path.read_bytes() == b"another's"
    assert names(tmp_path) == {"a.json"}


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
@posix
def test_the_mode_of_the_file_stays(tmp_path, mode):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    path.chmod(mode)
    write(path, force=True)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_the_file_stays(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    write(path, force=True)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


@posix
def test_what_is_private_is_so_from_the_first_byte_whatever_was_there(tmp_path):
    path = tmp_path / "map.json"
    path.write_bytes(b"old")
    path.chmod(0o644)
    with Output(path, force=True, private=True).open() as file:
        file.write(b"secret")
        (part,) = names(tmp_path) - {"map.json"}
        assert stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_part_file_has_another_name_each_time(tmp_path):
    seen = set()
    for _ in range(3):
        with Output(tmp_path / "a.json", force=True).open():
            seen |= names(tmp_path) - {"a.json"}
    assert len(seen) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, OSError, SystemExit])
def test_whatever_fails_the_old_file_stays_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with pytest.raises(TraceError if error is OSError else error), Output(path, force=True).open() as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"a.json"}


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes: what a full disk does, as an error of the write."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@posix
@pytest.mark.parametrize("size", [200_000, 9000])  # fails while it is written, or when the rest is flushed
def test_on_a_full_disk_the_old_file_stays(tmp_path, size):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with room_for(8192), pytest.raises(TraceError, match="cannot write"):
        write(path, b"x" * size, force=True)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"a.json"}


# -- what cannot be written is noticed before the work ---------------------------------------------------------------


def test_a_folder_and_a_place_in_none_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "no" / "a.json", tmp_path / "file" / "a.json", tmp_path / "a\0.json"):
        with pytest.raises(TraceError, match="cannot write"):
            Output(path, force=True)


@posix
def test_a_folder_without_permission_is_refused(powerless):
    (powerless / "old.json").write_bytes(b"old")
    powerless.chmod(0o555)
    for name in ("new.json", "old.json"):
        with pytest.raises(TraceError, match="cannot write"):
            Output(powerless / name, force=True)


@posix
def test_a_file_that_is_write_protected_is_refused(powerless):
    (powerless / "old.json").write_bytes(b"old")
    (powerless / "old.json").chmod(0o444)
    with pytest.raises(TraceError, match="Permission denied"):
        Output(powerless / "old.json", force=True)


# -- links -----------------------------------------------------------------------------------------------------------


@posix
def test_links_are_followed_there_or_not_yet(tmp_path):
    (tmp_path / "far").mkdir()
    for name in ("there", "not"):
        (tmp_path / name).symlink_to(tmp_path / "far" / name)
    (tmp_path / "far" / "there").write_bytes(b"old")
    with pytest.raises(TraceError, match="--force"):
        Output(tmp_path / "there")
    write(tmp_path / "there", force=True)
    write(tmp_path / "not")
    for name in ("there", "not"):
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "far" / name).read_bytes() == b"new"
    assert names(tmp_path / "far") == {"there", "not"}


@posix
def test_a_link_to_itself_is_an_error(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(TraceError, match="cannot write"):
        Output(tmp_path / "loop", force=True)


@posix
def test_the_same_file_by_another_name_is_an_input_still(tmp_path):
    (tmp_path / "sub").mkdir()
    trace = tmp_path / "run.json"
    trace.write_bytes(b"trace")
    (tmp_path / "linked").symlink_to(tmp_path)
    (tmp_path / "link.json").symlink_to(trace)
    os.link(trace, tmp_path / "hard.json")
    for name in ("run.json", "sub/../run.json", "linked/run.json", "link.json", "hard.json"):
        with pytest.raises(TraceError, match="also"):
            Output(Path(f"{tmp_path}/{name}"), force=True, inputs=["-", tmp_path / "gone", trace])
    # Neither is there yet: they will be one file all the same.
    with pytest.raises(TraceError, match="also"):
        Output(tmp_path / "linked" / "new.json", inputs=[f"{tmp_path}/sub/../new.json"])
    Output(tmp_path / "other.json", inputs=[trace])


# -- devices and pipes -----------------------------------------------------------------------------------------------


@posix
def test_a_device_stays_one_and_needs_no_force(tmp_path):
    (tmp_path / "null").symlink_to("/dev/null")
    for path in (Path("/dev/null"), tmp_path / "null"):
        assert write(path, private=True).size is None
        assert stat.S_ISCHR(path.stat().st_mode)
    assert names(tmp_path) == {"null"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
def test_a_device_that_is_full_is_said():
    with pytest.raises(TraceError, match="No space left"):
        write(Path("/dev/full"))


@posix
def test_a_pipe_gets_the_bytes_as_they_come(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write(path, b"x" * 100_000)
    reader.join()
    assert got == [b"x" * 100_000]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(sys.platform != "linux", reason="names of open files differ between systems")
def test_a_file_that_another_has_open_is_written_where_it_stands(tmp_path):
    """What a shell's `>> log` opened: replaced, the shell's output would end in a file without a name."""
    with open(tmp_path / "log", "w+b") as log:
        log.write(b"before ")
        log.flush()
        write(Path(f"/proc/self/fd/{log.fileno()}"), b"after", force=True)
        log.seek(0)
        assert log.read() == b"before after"
