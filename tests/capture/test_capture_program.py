"""`python -m capture`: somebody else's program, as Python would run it, and a trace beside."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch")

from capture import stamp

PROGRAMS = Path(__file__).parent / "programs"


def test_a_training_script_gives_the_same_result_and_its_optimizer_steps(run_python, tmp_path, load, steps_in):
    script = str(PROGRAMS / "train.py")
    plain = run_python(script, "--width", "32")
    recorded = run_python("-m", "capture", "-o", "t.json.gz", script, "--width", "32")
    assert recorded.returncode == plain.returncode == 0
    assert recorded.stdout == plain.stdout != ""
    assert steps_in(tmp_path / "t.json.gz") == [f"ProfilerStep#{n}" for n in range(13, 18)]
    trace = load(tmp_path / "t.json.gz")
    assert trace[stamp.KEY]["scenario"] == "train.py"
    assert trace[stamp.KEY]["unprofiled_step_us"] > 0
    assert sum(e["name"] == "Optimizer.step#AdamW.step" for e in trace["traceEvents"]) == 5


def test_an_inference_script_gives_the_same_result_and_its_model_calls(run_python, tmp_path, load):
    script = str(PROGRAMS / "infer.py")
    plain = run_python(script)
    recorded = run_python("-m", "capture", "-o", "t.json", "--active", "4", script)
    assert recorded.stdout == plain.stdout != ""
    events = load(tmp_path / "t.json")["traceEvents"]
    assert sum(e["name"] == "aten::linear" for e in events) == 4 * 6


PROBE = """
import os, pickle, sys
import helper

class Mine:
    pass

assert type(pickle.loads(pickle.dumps(Mine()))) is Mine
assert sys.modules["__main__"].Mine is Mine
print(__name__, os.path.basename(__file__), __spec__ is None or __spec__.name, __package__)
print(sys.argv[1:], sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
raise SystemExit(int(sys.argv[1]))
"""


def test_arguments_path_main_and_exit_code_are_pythons(run_python, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper.py").write_text("")
    (tmp_path / "sub" / "probe.py").write_text(PROBE)
    plain = run_python("sub/probe.py", "7", "-o", "x", "--help")
    recorded = run_python("-m", "capture", "--quiet", "sub/probe.py", "7", "-o", "x", "--help")
    assert recorded.returncode == plain.returncode == 7
    assert recorded.stdout == plain.stdout != ""
    assert "before the recording began" in recorded.stderr


def test_a_module_too(run_python, tmp_path):
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "probe.py").write_text(PROBE)
    plain = run_python("-m", "probe", "7", "a")
    recorded = run_python("-m", "capture", "--steps", "none", "-o", "t.json", "-m", "probe", "7", "a")
    assert recorded.returncode == plain.returncode == 7
    assert recorded.stdout == plain.stdout != ""
    assert (tmp_path / "t.json").exists()


ENDS = """
import os, signal, sys, time
import torch

def end():
    how = sys.argv[1]
    if how == "raise":
        raise ValueError("mine")
    if how == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    sys.exit("said at the end")

for _ in range(4):
    torch.ones(4, 4) @ torch.ones(4, 4)
end()
"""


@pytest.mark.parametrize(("how", "code"), [("raise", 1), ("interrupt", 130), ("exit", 1)])
def test_however_it_ends_the_end_is_its_own_and_the_trace_is_kept(run_python, tmp_path, load, how, code):
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    plain = run_python("ends.py", how)
    recorded = run_python("-m", "capture", "--steps", "none", "-o", "t.json", "ends.py", how)
    # A process ended by a signal reports minus its number here, and 130 in a shell.
    assert recorded.returncode == plain.returncode in (code, -2)
    said = [line for line in recorded.stderr.splitlines() if not line.startswith(("capture:", "USDT", "STAGE"))]
    assert said == plain.stderr.splitlines()
    assert any(e["name"] == "aten::matmul" for e in load(tmp_path / "t.json")["traceEvents"])


def test_a_program_that_profiles_itself_gets_its_profile(run_python, tmp_path, steps_in):
    (tmp_path / "own.py").write_text(
        """
import torch
model = torch.nn.Linear(8, 8).eval()
def call():
    with torch.no_grad():
        model(torch.ones(2, 8))
for _ in range(10):
    call()
with torch.profiler.profile() as own:
    call()
print([row.count for row in own.key_averages() if row.key == "aten::linear"])
"""
    )
    recorded = run_python("-m", "capture", "--wait", "2", "--warmup", "1", "-o", "t.json", "--active", "50", "own.py")
    assert recorded.returncode == 0
    assert recorded.stdout == "[1]\n"
    assert "starts its own profiler" in recorded.stderr
    assert len(steps_in(tmp_path / "t.json")) >= 5


def test_a_window_of_time(run_python, tmp_path, load, steps_in):
    (tmp_path / "loop.py").write_text(
        """
import time
import torch
end = time.monotonic() + 3
while time.monotonic() < end:
    torch.ones(4, 4) @ torch.ones(4, 4)
    time.sleep(0.005)
print("done")
"""
    )
    recorded = run_python("-m", "capture", "--after", "0.3", "--for", "0.4", "-o", "t.json", "loop.py")
    assert (recorded.returncode, recorded.stdout) == (0, "done\n")
    times = [e["ts"] for e in load(tmp_path / "t.json")["traceEvents"] if e["name"] == "aten::matmul"]
    assert 2 < len(times) < 100
    assert 50_000 < max(times) - min(times) < 900_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "which program"),
        (["missing.py"], "no such file: missing.py"),
        (["--after", "1", "x.py"], "belong together"),
        (["--active", "0", "x.py"], "active must be"),
        (["-o", "t.txt", "x.py"], "NAME.json"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(capsys, arguments, says):
    from capture.__main__ import main

    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
