"""The other process of the `spikes` scenario: large products in bursts, once told to go.

Says `ready` on standard output when it can, and begins with the first line on standard input; ends when
standard input does.
"""

import sys
import threading
import time

import torch


def main() -> None:
    """Bursts until standard input closes."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size, gap = int(sys.argv[1]), float(sys.argv[2])
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(a)
    torch.matmul(a, a, out=out)
    if device == "cuda":
        torch.cuda.synchronize()
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    while not ended.is_set():
        for _ in range(3):
            torch.matmul(a, a, out=out)
        if device == "cuda":
            torch.cuda.synchronize()
        time.sleep(gap)


if __name__ == "__main__":
    main()
