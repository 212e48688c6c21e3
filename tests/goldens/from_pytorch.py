"""What the page "From PyTorch" shows in Python, run with every check of the numbers."""

import torch
import torch.nn.functional as F
from torch import nn


def shapes():
    # ANCHOR: shapes
    norm = nn.LayerNorm(8)
    try:
        norm(torch.zeros(1, 3, 6))  # found out when this line runs
    except RuntimeError as error:
        message = str(error)
    # ANCHOR_END: shapes
    assert "normalized_shape=[8]" in message, message


def broadcast():
    # ANCHOR: broadcast
    x = torch.zeros(2, 2, 3)
    shift = torch.tensor([10.0, 20.0, 30.0])
    y = x + shift  # [3] is spread over [2, 2, 3]
    # ANCHOR_END: broadcast
    assert y[1, 1].tolist() == [10.0, 20.0, 30.0]


def moves():
    # ANCHOR: moves
    x = torch.tensor([3.0, 4.0])
    y = x  # two names of one tensor
    y += 1.0
    assert x.tolist() == [4.0, 5.0]
    # ANCHOR_END: moves


def tape():
    # ANCHOR: tape
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    loss = x.square().sum()
    loss.backward()
    assert x.grad.tolist() == [6.0, 8.0]
    # ANCHOR_END: tape


def in_place():
    # ANCHOR: in_place
    weight, step = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.5])
    weight -= step
    weight.clamp_(min=0.75)
    assert weight.tolist() == [0.75, 1.5]
    # ANCHOR_END: in_place


def errors():
    # ANCHOR: errors
    table = torch.zeros(10, 4)
    try:
        F.embedding(torch.tensor([[7, 10]]), table)
    except IndexError as error:
        assert str(error) == "index out of range in self"
    # ANCHOR_END: errors


def numbers():
    # ANCHOR: numbers
    variance = torch.tensor([0.25, 4.0])
    floor = 0.75  # any number of Python
    assert (variance + floor).tolist() == [1.0, 4.75]
    # ANCHOR_END: numbers


def devices():
    # ANCHOR: devices
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.ones(3, device=dev)
    y = x * torch.ones(3, device=dev)  # on two devices: an error when it runs
    # ANCHOR_END: devices
    assert y.device.type == dev


def run():
    for piece in (shapes, broadcast, moves, tape, in_place, errors, numbers, devices):
        piece()
