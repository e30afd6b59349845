"""An ordinary inference script that knows nothing of any recording."""

import sys

import torch


def main() -> None:
    """Set up with a call of another module, then run a model in a loop."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    setup = torch.nn.Linear(64, 64).to(device)
    x = setup(torch.randn(8, 64, device=device)).detach()
    layers = [torch.nn.Linear(64, 64) for _ in range(6)]
    model = torch.nn.Sequential(*layers).to(device).eval()
    with torch.inference_mode():
        for _ in range(calls):
            x = torch.tanh(model(x))
    sys.stdout.write(f"sum {x.sum().item():.10f}\n")


if __name__ == "__main__":
    main()
