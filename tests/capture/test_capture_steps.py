"""Steps seen through torch's hooks, and nothing left of them afterwards."""

import warnings

import pytest

torch = pytest.importorskip("torch", reason="recording needs torch")

from torch.nn.modules import module as modules  # noqa: E402
from torch.optim import optimizer as optimizers  # noqa: E402

from capture import steps  # noqa: E402
from capture.steps import StepHooks  # noqa: E402
from capture.window import call_on_main_thread  # noqa: E402


class Sink:
    def __init__(self):
        self.steps = self.restarts = 0

    def step(self):
        self.steps += 1

    def restart(self):
        self.restarts += 1
        self.steps = 0


def hooks_left(*models):
    everywhere = len(optimizers._global_optimizer_post_hooks) + len(modules._global_forward_pre_hooks)
    return everywhere + sum(len(m._forward_hooks) for model in models for m in model.modules())


@pytest.fixture
def model():
    inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    return torch.nn.Sequential(torch.nn.Linear(4, 4), inner)


@pytest.fixture
def sink():
    return Sink()


def watch(sink, kind="auto"):
    hooks = StepHooks(sink, kind)
    hooks.install()
    return hooks


def train(model, optimizer, count):
    for _ in range(count):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


def test_optimizer_steps_are_steps(model, sink):
    hooks = watch(sink)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 6)
    assert sink.steps == 6
    hooks.remove()
    assert hooks_left(model) == 0


def test_evaluation_before_training_is_no_step(model, sink):
    hooks = watch(sink)
    with torch.no_grad():
        for _ in range(5):
            model(torch.ones(2, 4))
    assert sink.steps == 4
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)
    assert (sink.steps, sink.restarts) == (2, 1)
    hooks.remove()


def test_only_the_first_optimizer_makes_steps(model, sink):
    hooks = watch(sink, "optimizer")
    first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    for _ in range(3):
        train(model, first, 1)
        train(model, second, 5)
    assert sink.steps == 3
    hooks.remove()


def test_calls_of_the_outermost_module_are_steps(model, sink):
    hooks = watch(sink)
    with torch.inference_mode():
        for _ in range(6):
            model(torch.ones(2, 4))
    # The first call only shows which module it is.
    assert sink.steps == 5
    assert hooks_left(model) == 2, "one on the model, one that waits for an optimizer"
    hooks.remove()
    assert hooks_left(model) == 0


def test_a_module_called_once_to_set_up_is_not_taken_for_it(model, sink):
    setup = torch.nn.Linear(4, 4)
    hooks = watch(sink)
    with torch.no_grad():
        setup(torch.ones(2, 4))
        for _ in range(6):
            model(torch.ones(2, 4))
    assert sink.steps == 5
    assert hooks_left(setup, model) == 2
    hooks.remove()


def test_no_module_is_hooked_from_outside_while_the_outermost_one_runs(sink):
    class Outer(torch.nn.Module):
        def forward(self, x):
            seen.append(len(modules._global_forward_pre_hooks))
            return x

    seen = []
    hooks = watch(sink)
    outer = Outer()
    for _ in range(4):
        outer(torch.ones(1))
    assert seen == [0] * 4
    hooks.remove()


def test_forwards_with_gradients_count_only_where_no_optimizer_comes(model, sink):
    hooks = watch(sink)
    for _ in range(steps.FORWARDS_WITHOUT_OPTIMIZER + 5):
        model(torch.ones(2, 4))
    assert sink.steps == 4
    hooks.remove()
    with_gradients = Sink()
    hooks = watch(with_gradients, "forward")
    for _ in range(5):
        model(torch.ones(2, 4))
    assert with_gradients.steps == 4
    hooks.remove()


def test_hooks_can_be_removed_from_within(model):
    class Once(Sink):
        def step(self):
            super().step()
            hooks.remove()

    for run_it in (
        lambda: train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3),
        lambda: [model.eval()(torch.ones(2, 4)) for _ in range(3)],
    ):
        sink = Once()
        hooks = watch(sink)
        run_it()
        assert sink.steps == 1
        assert hooks_left(model) == 0


def test_removing_from_within_spares_a_hook_registered_later(model):
    class Once(Sink):
        def step(self):
            super().step()
            hooks.remove()

    sink, others = Once(), []
    hooks = watch(sink, "optimizer")
    later = optimizers.register_optimizer_step_post_hook(lambda *_: others.append(1))
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    assert (sink.steps, len(others)) == (1, 3)
    later.remove()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 1)
    assert sink.steps == 1
    assert hooks_left() == 0


def test_a_compiled_module_is_seen_without_a_warning(model, sink):
    compiled = torch.compile(model, backend="eager")
    hooks = watch(sink)
    before = list(warnings.filters)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("error", message=".*global hooks.*")
        hooks.remove()
        hooks = watch(sink)
        for _ in range(4):
            compiled(torch.ones(2, 4))
    assert sink.steps == 3
    hooks.remove()
    assert [f for f in warnings.filters if "global hooks" in str(f[1])] == [
        f for f in before if "global hooks" in str(f[1]) and f in warnings.filters
    ]


def test_an_unknown_kind_is_refused(sink):
    with pytest.raises(ValueError, match="not 'epoch'"):
        StepHooks(sink, "epoch")


def test_the_main_thread_can_be_asked_to_call_something():
    import threading
    import time

    called = []
    thread = threading.Thread(target=lambda: call_on_main_thread(lambda: called.append(threading.current_thread())))
    thread.start()
    thread.join()
    end = time.monotonic() + 5
    while not called and time.monotonic() < end:
        time.sleep(0.001)
    assert called == [threading.main_thread()]
