"""Small models that several scenarios share."""

from typing import Any

import torch
from torch.nn import functional

# A name of type Any: the checker then says the same with torch installed and without.
Module: Any = torch.nn.Module


class Mlp(Module):  # type: ignore[misc]
    """A gated feed-forward block (SwiGLU) without biases."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(width, hidden, bias=False)
        self.up = torch.nn.Linear(width, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x: Any) -> Any:
        """Tokens by width, in and out."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(Module):  # type: ignore[misc]
    """A transformer layer, norm first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Batch by tokens by width, in and out."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Lm(Module):  # type: ignore[misc]
    """A language model: token ids in, logits out."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int = 32000) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, ids: Any) -> Any:
        """Batch by tokens in, batch by tokens by vocabulary out."""
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Bottleneck(Module):  # type: ignore[misc]
    """A residual block of a ResNet-50."""

    def __init__(self, inside: int, planes: int, stride: int) -> None:
        super().__init__()
        conv, norm, outside = torch.nn.Conv2d, torch.nn.BatchNorm2d, 4 * planes
        self.conv1, self.bn1 = conv(inside, planes, 1, bias=False), norm(planes)
        self.conv2, self.bn2 = conv(planes, planes, 3, stride, 1, bias=False), norm(planes)
        self.conv3, self.bn3 = conv(planes, outside, 1, bias=False), norm(outside)
        self.relu = torch.nn.ReLU(inplace=True)
        self.downsample: Any = None
        if stride != 1 or inside != outside:
            self.downsample = torch.nn.Sequential(conv(inside, outside, 1, stride, bias=False), norm(outside))

    def forward(self, x: Any) -> Any:
        """Images in, feature maps out."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def resnet(layers: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> Any:
    """A residual network; the defaults are those of ResNet-50."""
    parts: list[Any] = [
        torch.nn.Conv2d(3, width, 7, 2, 3, bias=False),
        torch.nn.BatchNorm2d(width),
        torch.nn.ReLU(inplace=True),
        torch.nn.MaxPool2d(3, 2, 1),
    ]
    inside = width
    for stage, blocks in enumerate(layers):
        planes = width * 2**stage
        for block in range(blocks):
            parts.append(Bottleneck(inside, planes, 2 if stage and not block else 1))
            inside = 4 * planes
    parts += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(inside, classes)]
    return torch.nn.Sequential(*parts)
