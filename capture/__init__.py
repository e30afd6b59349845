"""Record PyTorch profiler traces that can be trusted. Needs torch and the standard library only.

    from capture import record

    with record("run.json.gz") as recording:
        for batch in loader:
            train_step(batch)
            recording.step()

`python -m capture train.py` records a program without changing it.
"""

from capture.recorder import Recorder
from capture.recording import record, step
from capture.schedule import Schedule

__all__ = ["Recorder", "Schedule", "record", "step"]
