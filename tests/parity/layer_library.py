"""The model of apps/examples/layer_library in PyTorch. usage: layer_library.py DIRECTORY

A linear layer, SwiGLU (Shazeer, "GLU Variants Improve Transformer", 2020) and a linear layer, with
the focal loss (Lin et al., "Focal Loss for Dense Object Detection", 2017, gamma 2), the mean over
the targets that are not ignored; SGD with momentum, float64, two steps.

Writes into DIRECTORY start.safetensors, train.safetensors and test.safetensors (inputs, targets),
end.safetensors, and outputs.safetensors (of the end, on the test inputs); prints the loss of each
step, then loss and accuracy on the test data.
"""

import pathlib
import sys

import torch
import torch.nn.functional as F

from tensor_files import write_safetensors

STEPS, BATCH, TEST, IGNORED = 2, 6, 5, 3


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(784, 64)
        self.gate = torch.nn.ModuleDict({
            "w1": torch.nn.Linear(64, 96, bias=False),
            "w3": torch.nn.Linear(64, 96, bias=False),
            "w2": torch.nn.Linear(96, 64, bias=False),
        })
        self.classify = torch.nn.Linear(64, 10)

    def forward(self, x):
        x = self.embed(x)
        return self.classify(self.gate["w2"](F.silu(self.gate["w1"](x)) * self.gate["w3"](x)))


def focal_loss(outputs, targets):
    cross_entropy = F.cross_entropy(outputs, targets, ignore_index=IGNORED, reduction="none")
    counts = targets != IGNORED
    return ((1 - torch.exp(-cross_entropy)) ** 2 * cross_entropy)[counts].mean()


def main():
    directory = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(9)
    model = Model().double()
    write_safetensors(directory / "start.safetensors", model.state_dict())
    inputs = torch.randn(STEPS * BATCH, 784, dtype=torch.float64)
    targets = torch.randint(10, (STEPS * BATCH,))
    targets[1::4] = IGNORED  # not as many in each micro-batch
    write_safetensors(directory / "train.safetensors", {"inputs": inputs, "targets": targets})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        loss = focal_loss(model(inputs[part]), targets[part])
        loss.backward()
        optimizer.step()
        print(loss.item())
    write_safetensors(directory / "end.safetensors", model.state_dict())
    inputs = torch.randn(TEST, 784, dtype=torch.float64)
    with torch.no_grad():
        outputs = model(inputs)
        targets = outputs.argmax(1)
        targets[0] = (targets[0] + 1) % 10
        targets[1] = IGNORED
        counts = targets != IGNORED
        print(focal_loss(outputs, targets).item())
        print((outputs.argmax(1) == targets)[counts].double().mean().item())
    write_safetensors(directory / "test.safetensors", {"inputs": inputs, "targets": targets})
    write_safetensors(directory / "outputs.safetensors", {"outputs": outputs})


if __name__ == "__main__":
    main()
