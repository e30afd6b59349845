"""An ordinary training script that knows nothing of any recording."""

import argparse
import sys

import torch


def main() -> None:
    """Train a small network on noise, and print the last loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width = options.width
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)).to(
        device
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for _ in range(options.steps):
        x = torch.randn(32, width, device=device)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.10f}\n")


if __name__ == "__main__":
    main()
