"""What PyTorch computes, in float64, for trainings whose batches Troupe cuts: the reference of
micro_batch_parity_test.cpp. usage: micro_batches.py DIRECTORY

Writes into the directory, for each CASE:
  CASE.start.safetensors   the initial weights and buffers
  CASE.data.safetensors    "inputs" and "targets", every number exact in float32
and into expected.safetensors:
  CASE/loss/<step>         loss of the step, steps from 0
  CASE/norm/<step>         2-norm of all gradients
  CASE/state/<step>/<name> weights and buffers after the step
  CASE/evaluation/loss     of all data at the end, in evaluation mode
  CASE/evaluation/accuracy where there are classes
"""

import pathlib
import sys
from collections import OrderedDict

import torch
import torchvision
from torch import nn

from tensor_files import write_safetensors

LR = 0.1
MOMENTUM = 0.9


def over_tokens(loss):
    """PyTorch has the classes in the second dimension, Troupe in the last."""
    return lambda outputs, targets: loss(outputs.transpose(1, -1), targets)


class DeferredStatistics:
    """Running statistics of batch norms that follow all values since the last commit together."""

    def __init__(self, model):
        self.norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
        self.inputs = {norm: [] for norm in self.norms}
        for norm in self.norms:
            norm.momentum = 0.0  # the forward leaves them as they are
            norm.register_forward_pre_hook(self.keep)

    def keep(self, norm, inputs):
        if norm.training:
            self.inputs[norm].append(inputs[0].detach())

    def commit(self, batches):
        for norm in self.norms:
            values = torch.cat(self.inputs[norm])
            norm.running_mean.mul_(0.9).add_(0.1 * values.mean((0, 2, 3)))
            norm.running_var.mul_(0.9).add_(0.1 * values.var((0, 2, 3), unbiased=True))
            norm.num_batches_tracked.fill_(batches)
            self.inputs[norm].clear()


def steps_of(samples, batch, accumulate, count):
    """The samples of each step: `accumulate` batches, but never beyond the end of an epoch."""
    in_epoch = [range(i, min(i + accumulate * batch, samples))
                for i in range(0, samples, accumulate * batch)]
    return [list(in_epoch[i % len(in_epoch)]) for i in range(count)]


def micro_batches(rows, batch, micro_batch):
    for begin in range(0, len(rows), batch):
        of_batch = rows[begin:begin + batch]
        for first in range(0, len(of_batch), micro_batch):
            yield of_batch[first:first + micro_batch]


def whole(model, loss, inputs, targets, rows):
    """The loss of all rows at once: what the cut must not change."""
    value = loss(model(inputs[rows]), targets[rows])
    value.backward()
    return value.item()


def cut(batch, micro_batch):
    """By micro-batch, where that is part of the definition; weighted by the samples."""
    def run(model, loss, inputs, targets, rows):
        total = 0.0
        for part in micro_batches(rows, batch, micro_batch):
            value = loss(model(inputs[part]), targets[part]) * (len(part) / len(rows))
            value.backward()
            total += value.item()
        return total
    return run


def train(directory, name, model, loss, inputs, targets, steps, run, tensors, deferred=False):
    write_safetensors(directory / f"{name}.start.safetensors",
                      {k: v.clone() for k, v in model.state_dict().items()})
    write_safetensors(directory / f"{name}.data.safetensors",
                      {"inputs": inputs, "targets": targets})
    model = model.double().train()
    inputs = inputs.double()
    targets = targets.double() if targets.is_floating_point() else targets
    statistics = DeferredStatistics(model) if deferred else None
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    for step, rows in enumerate(steps):
        optimizer.zero_grad()
        value = run(model, loss, inputs, targets, rows)
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        optimizer.step()
        if statistics:
            statistics.commit(step + 1)
        tensors[f"{name}/loss/{step}"] = torch.tensor([value], dtype=torch.float64)
        tensors[f"{name}/norm/{step}"] = norm.reshape(1)
        for key, state in model.state_dict().items():
            tensors[f"{name}/state/{step}/{key}"] = state.clone()
    model.eval()
    with torch.no_grad():
        outputs = model(inputs)
        tensors[f"{name}/evaluation/loss"] = loss(outputs, targets).reshape(1)
        if not targets.is_floating_point():
            counted = targets != -100
            hits = (outputs.argmax(-1) == targets) & counted
            accuracy = hits.sum().double() / counted.sum()
            tensors[f"{name}/evaluation/accuracy"] = accuracy.reshape(1)


def token_model():
    return nn.Sequential(
        OrderedDict(first=nn.Linear(6, 8), middle=nn.Tanh(), second=nn.Linear(8, 5))
    )


def main(directory):
    torch.set_num_threads(1)
    torch.manual_seed(11)
    tensors = {}

    inputs = torch.randn(11, 4, 6)
    targets = torch.randint(5, (11, 4))
    targets[torch.rand(targets.shape) < 0.5] = -100
    targets[2:4] = -100  # a whole micro-batch
    targets[10, :2] = 1  # not all of the last, short batch
    loss = over_tokens(nn.CrossEntropyLoss(label_smoothing=0.1))
    train(directory, "tokens", token_model(), loss, inputs, targets, steps_of(11, 5, 1, 3), whole,
          tensors)
    train(directory, "accumulated", token_model(), loss, inputs, targets,
          steps_of(11, 5, 2, 3), whole, tensors)
    train(directory, "numbers", token_model(), nn.HuberLoss(delta=0.5), inputs,
          torch.randn(11, 4, 5), steps_of(11, 5, 2, 3), whole, tensors)

    images = torch.randn(7, 3, 64, 64)
    train(directory, "deferred", torchvision.models.resnet18(num_classes=10),
          nn.CrossEntropyLoss(), images, torch.randint(10, (7,)), steps_of(7, 3, 2, 3), cut(3, 2),
          tensors, deferred=True)
    write_safetensors(directory / "expected.safetensors", tensors)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
