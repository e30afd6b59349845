"""`record`: what is written, when, and what happens where something goes wrong."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="recording needs torch")

import capture  # noqa: E402
from capture import output, record, stamp  # noqa: E402
from capture.scenarios import check  # noqa: E402


def work() -> None:
    torch.ones(8, 8) @ torch.ones(8, 8)


def run(recorder, steps):
    with recorder:
        for _ in range(steps):
            work()
            recorder.step()
    return recorder


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_records_the_steps_of_the_schedule_under_their_own_numbers(tmp_path, load, steps_in, name):
    path = tmp_path / "deep" / "er" / name
    recorder = run(record(path, wait=4, warmup=2, active=3), 20)
    assert recorder.files == [path]
    assert recorder.problems == []
    assert steps_in(path) == ["ProfilerStep#6", "ProfilerStep#7", "ProfilerStep#8"]
    trace = load(path)
    assert trace["traceName"] == "run.json"
    assert sum(e["name"] == "aten::matmul" for e in trace["traceEvents"]) == 3


def test_leaves_nothing_but_the_file(tmp_path):
    run(record(tmp_path / "run.json.gz", wait=2, warmup=1, active=1), 4)
    assert [p.name for p in tmp_path.iterdir()] == ["run.json.gz"]


def test_an_existing_file_is_replaced_whole_or_stays(tmp_path, load, capsys):
    path = tmp_path / "run.json"
    path.write_text("old")

    def broken(target):
        with open(target, "w") as file:
            file.write('{"half": ')
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        output.write(path, broken)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    run(record(path, wait=0, warmup=0, active=1), 1)
    assert load(path)["traceEvents"]


def test_the_same_events_pack_to_the_same_bytes(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        output.write(tmp_path / name, lambda target: Path(target).write_text('{"traceEvents": []}'))
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_repeats_write_a_file_each(tmp_path, steps_in):
    recorder = run(record(tmp_path / "run.json", wait=2, warmup=1, active=1, repeat=2), 9)
    assert [p.name for p in recorder.files] == ["run.part-1.json", "run.part-2.json"]
    assert [steps_in(p) for p in recorder.files] == [["ProfilerStep#3"], ["ProfilerStep#7"]]


def test_the_rank_is_in_the_name(tmp_path, load, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    recorder = run(record(tmp_path / "run.json.gz", wait=0, warmup=0, active=1), 1)
    assert [p.name for p in recorder.files] == ["run.rank-3.json.gz"]
    seen = load(recorder.files[0])[stamp.KEY]
    assert (seen["rank"], seen["world_size"]) == (3, 4)


def test_whole_records_the_block_without_steps(tmp_path, load, steps_in):
    path = tmp_path / "run.json"
    with record(path, whole=True) as recorder:
        work()
    assert steps_in(path) == []
    assert recorder.problems == []
    assert any(e["name"] == "aten::matmul" for e in load(path)["traceEvents"])


def test_as_a_decorator_each_call_is_a_recording(tmp_path, steps_in):
    path = tmp_path / "run.json"

    @record(path, wait=2, warmup=1, active=2)
    def main(steps: int) -> str:
        for _ in range(steps):
            work()
            capture.step()
        return "result"

    assert main(8) == "result"
    assert main.__name__ == "main"
    assert steps_in(path) == ["ProfilerStep#3", "ProfilerStep#4"]
    path.unlink()
    assert main(steps=8) == "result"
    assert path.exists()


def test_a_step_outside_any_recording_is_nothing():
    capture.step()


@pytest.mark.parametrize(
    "options",
    [{"wait": -1}, {"active": 0}, {"repeat": 0}, {"warmup": 1.5}, {"wait": True}, {"path": "run.txt"}],
)
def test_refuses_what_makes_no_sense_before_anything_runs(options):
    with pytest.raises(ValueError, match=r"must be|is written as"):
        record(**{"path": "run.json", **options})


def test_refuses_to_decorate_without_parentheses_and_coroutines():
    with pytest.raises(TypeError, match="parentheses"):
        record(work)

    async def later():
        return None

    with pytest.raises(TypeError, match="coroutine"):
        record("run.json")(later)


def test_a_recorder_is_used_once(tmp_path):
    recorder = run(record(tmp_path / "run.json", wait=0, warmup=0, active=1), 1)
    with pytest.raises(RuntimeError, match="used once"), recorder:
        pass


class TestFewerSteps:
    def test_than_are_to_be_recorded(self, tmp_path, steps_in, load, capsys):
        recorder = run(record(tmp_path / "run.json", wait=2, warmup=1, active=10), 7)
        assert len(steps_in(recorder.files[0])) == 5
        assert "recorded 4 of 10 steps. 7 steps were seen; the schedule needs 13" in capsys.readouterr().err
        assert load(recorder.files[0])[stamp.KEY]["cut_short"] == "program ended"

    @pytest.mark.parametrize(("steps", "where"), [(1, "before the recording began"), (3, "warming up")])
    def test_than_it_takes_to_begin(self, tmp_path, capsys, steps, where):
        recorder = run(record(tmp_path / "run.json", wait=2, warmup=3, active=2), steps)
        assert recorder.files == []
        assert list(tmp_path.iterdir()) == []
        assert where in capsys.readouterr().err

    def test_none_says_what_to_do(self, tmp_path, capsys):
        run(record(tmp_path / "run.json"), 0)
        assert "call step() at the end of each step" in capsys.readouterr().err


class TestTheProgramGoesOn:
    def test_its_exception_passes_and_the_trace_is_there(self, tmp_path, load):
        recorder = record(tmp_path / "run.json", wait=1, warmup=0)

        def program():
            with recorder:
                for _ in range(3):
                    work()
                    recorder.step()
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            program()
        assert load(recorder.files[0])["traceEvents"]

    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
    def test_its_end_passes(self, tmp_path, error):
        recorder = record(tmp_path / "run.json", whole=True)

        def program():
            with recorder:
                work()
                raise error

        with pytest.raises(type(error)):
            program()
        assert recorder.files

    def test_when_the_profiler_cannot_start(self, tmp_path, monkeypatch, capsys):
        def refuse(*_args, **_kwargs):
            raise RuntimeError("no profiler today")

        monkeypatch.setattr("capture.recorder.profile", refuse)
        recorder = run(record(tmp_path / "run.json", wait=1, warmup=1, active=1), 5)
        assert recorder.files == []
        assert "no profiler today" in capsys.readouterr().err

    def test_when_the_export_fails(self, tmp_path, capsys):
        folder = tmp_path / "file"
        folder.write_text("in the way")
        recorder = run(record(folder / "run.json", wait=1, warmup=0, active=1), 5)
        assert recorder.files == []
        assert "The program goes on" in capsys.readouterr().err
        assert not torch._C._autograd._profiler_enabled()

    def test_when_what_is_done_with_the_file_fails(self, tmp_path, capsys):
        def broken(_profiler, _path):
            raise ValueError("mine to fix")

        recorder = run(record(tmp_path / "run.json", wait=0, warmup=0, active=1, on_ready=broken), 2)
        assert recorder.files
        assert "mine to fix" in capsys.readouterr().err

    def test_steps_of_other_threads_are_not_counted(self, tmp_path):
        with record(tmp_path / "run.json", wait=100) as recorder:
            thread = threading.Thread(target=recorder.step)
            thread.start()
            thread.join()
            assert recorder.steps == 0
            recorder.step()
            assert recorder.steps == 1


class TestProgramsThatProfileThemselves:
    def test_have_precedence_over_a_recording_under_way(self, tmp_path, load, capsys):
        with record(tmp_path / "run.json", wait=1, warmup=1, active=50) as recorder:
            for _ in range(5):
                work()
                recorder.step()
            with torch.profiler.profile() as own:
                work()
            for _ in range(5):
                work()
                recorder.step()
        assert any(row.key == "aten::matmul" for row in own.key_averages())
        assert load(recorder.files[0])[stamp.KEY]["cut_short"] == "the program started its own profiler"
        assert "starts its own profiler" in capsys.readouterr().err

    def test_are_waited_for(self, tmp_path, steps_in, capsys):
        with record(tmp_path / "run.json", wait=2, warmup=1, active=2) as recorder:
            with torch.profiler.profile() as own:
                for _ in range(7):
                    work()
                    recorder.step()
            for _ in range(10):
                work()
                recorder.step()
        assert sum(row.count for row in own.key_averages() if row.key == "aten::matmul") == 7
        assert len(steps_in(recorder.files[0])) == 2
        assert "waiting until it has finished" in capsys.readouterr().err

    def test_around_the_whole_recording(self, tmp_path, capsys):
        with torch.profiler.profile() as own:
            recorder = run(record(tmp_path / "run.json", whole=True), 3)
        assert recorder.files == []
        assert own.key_averages()
        assert "already" in capsys.readouterr().err

    def test_the_profiler_is_as_it_was_afterwards(self, tmp_path):
        module = torch.autograd.profiler
        before = [module._prepare_profiler, module._enable_profiler, module._disable_profiler]
        run(record(tmp_path / "run.json", wait=1, warmup=1, active=1), 5)
        assert before == [module._prepare_profiler, module._enable_profiler, module._disable_profiler]


class TestStamp:
    def test_says_how_it_was_recorded(self, tmp_path, load):
        path = tmp_path / "run.json"
        recorder = record(path, wait=6, warmup=1, active=3, scenario="a", flags={"size": 8})
        seen = load(run(recorder, 12).files[0])[stamp.KEY]
        assert seen["version"] == 1
        assert seen["torch"] == torch.__version__
        assert seen["scenario"] == "a"
        assert seen["flags"] == {
            "shapes": False, "stacks": False, "memory": False, "modules": False, "size": 8,
        }  # fmt: skip
        assert (seen["unprofiled_steps"], seen["profiled_steps"]) == (3, 3)
        assert seen["steps_before"] == 7
        assert seen["cut_short"] is None
        for kind in ("unprofiled", "profiled"):
            laps = sorted(seen[f"{kind}_step_us_all"])
            assert seen[f"{kind}_step_us"] == laps[1] > 0
        assert seen["unprofiled_wall_step_us"] > 0

    def test_survives_what_the_profiler_does_to_quotes_and_backslashes(self, tmp_path, load):
        flags = {"path": "a\\b", 'q"': ['"x"', "line\nbreak", "µs"], "nan": float("nan"), "none": None}
        recorder = record(tmp_path / "run.json", whole=True, scenario='say "so"', flags=flags)
        seen = load(run(recorder, 1).files[0])[stamp.KEY]
        assert seen["scenario"] == "say 'so'"
        assert seen["flags"]["path"] == "a/b"
        assert seen["flags"]["q'"] == ["'x'", "line break", "µs"]
        assert seen["flags"]["nan"] is None

    def test_leaves_out_what_was_not_measured(self, tmp_path, load):
        seen = load(run(record(tmp_path / "run.json", wait=0, warmup=0, active=1), 1).files[0])[stamp.KEY]
        assert "unprofiled_step_us" not in seen
        assert "unprofiled_wall_step_us" not in seen

    def test_has_no_names_of_this_machine(self, tmp_path, load):
        seen = json.dumps(load(run(record(tmp_path / "run.json"), 30).files[0])[stamp.KEY])
        for secret in (os.uname().nodename, str(tmp_path), os.path.expanduser("~")):
            assert len(secret) < 4 or secret not in seen

    def test_times_what_a_step_takes(self, tmp_path, load):
        with record(tmp_path / "run.json", wait=5, warmup=1, active=2) as recorder:
            for _ in range(8):
                time.sleep(0.01)
                recorder.step()
        seen = load(recorder.files[0])[stamp.KEY]
        for name in ("unprofiled_step_us", "profiled_step_us", "unprofiled_wall_step_us"):
            assert 10_000 <= seen[name] < 100_000


def test_options_record_more(tmp_path, load):
    path = tmp_path / "run.json"
    recorder = record(path, wait=1, warmup=1, active=1, shapes=True, stacks=True, memory=True)
    trace = load(run(recorder, 5).files[0])
    assert trace["record_shapes"] == trace["with_stack"] == trace["profile_memory"] == 1
    assert any("Input Dims" in e.get("args", {}) for e in trace["traceEvents"])
    assert any(e.get("cat") == "python_function" for e in trace["traceEvents"])


def test_measures_as_announced(tmp_path):
    def event(category, thread, start, duration, correlation):
        args = {"correlation": correlation}
        return {
            "ph": "X", "cat": category, "name": "x", "tid": thread, "ts": start, "dur": duration, "args": args,
        }  # fmt: skip

    events = [
        {"ph": "X", "cat": "user_annotation", "name": "a", "tid": 1, "ts": 10, "dur": 10},
        event("cuda_runtime", 1, 12, 1, 5),
        event("cuda_runtime", 2, 13, 1, 6),
        event("kernel", 7, 20, 4, 5),
        event("kernel", 7, 26, 4, 5),
        event("kernel", 8, 28, 2, 6),
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    found = check.measure(path)
    assert found["annotations"] == {"a": 2}
    assert (found["linked"], found["span_us"], found["busy_us"], found["busy_share"]) == (3, 10, 8, 0.8)
    assert check.differences(found, {"a": 2}) == []
    assert check.differences(found, {"a": 3}) == ["a: 2 device events, 3 were announced"]
