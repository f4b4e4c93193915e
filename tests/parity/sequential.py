"""A small perceptron with tied weights in PyTorch: what it computes in float64, in bfloat16 as
Troupe declares it, and under plain autocast. usage: sequential.py DIRECTORY

Layers: a (linear, 12 to 12), b (tanh), c (linear, the weight of a), d (relu), e (linear, the weight
of a), f (linear, 12 to 5); cross-entropy. SGD with momentum and clipping, 3 steps of 7 samples in
micro-batches of 3, 3 and 1.

Writes into DIRECTORY start.safetensors (a.weight once), data.safetensors, and results.safetensors:
  MODE/loss/<step>, MODE/norm/<step>       norm before clipping
  MODE/gradient/<name>                     of the first step, before clipping
  MODE/state/<step>/<name>
for each MODE: float64; bfloat16: values rounded to bfloat16 between layers and brought to float32
within them, layers under autocast, the loss in float32; autocast: torch.autocast around the model.
"""

import argparse
import pathlib

import torch
import torch.nn.functional as F

from tensor_files import write_safetensors

STEPS, BATCH, MICRO_BATCH, FEATURES, CLASSES = 3, 7, 3, 12, 5
LR, MOMENTUM, CLIP = 0.2, 0.9, 1.0


class Tied(torch.nn.Module):
    def __init__(self, start, dtype):
        super().__init__()
        self.weights = torch.nn.ParameterDict({
            name.replace(".", "/"): torch.nn.Parameter(value.to(dtype))
            for name, value in start.items()
        })

    def __getitem__(self, name):
        return self.weights[name.replace(".", "/")]

    def layers(self):
        return [
            lambda x: F.linear(x, self["a.weight"], self["a.bias"]),
            torch.tanh,
            lambda x: F.linear(x, self["a.weight"], self["c.bias"]),
            torch.relu,
            lambda x: F.linear(x, self["a.weight"], self["e.bias"]),
            lambda x: F.linear(x, self["f.weight"], self["f.bias"]),
        ]

    def named(self):
        return {name.replace("/", "."): value for name, value in self.weights.items()}


def outputs_of(model, inputs, mode):
    if mode == "float64":
        x = inputs.double()
        for layer in model.layers():
            x = layer(x)
        return x
    if mode == "autocast":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = inputs
            for layer in model.layers():
                x = layer(x)
        return x.float()
    x = inputs.bfloat16()
    for layer in model.layers():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x.float())
        x = y.bfloat16()
    return x.float()


def train(start, batches, mode):
    results = {}
    model = Tied(start, torch.float64 if mode == "float64" else torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    for step, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        loss = 0.0
        for begin in range(0, BATCH, MICRO_BATCH):
            part = slice(begin, min(begin + MICRO_BATCH, BATCH))
            weight = (part.stop - part.start) / BATCH
            part_loss = F.cross_entropy(outputs_of(model, inputs[part], mode), targets[part])
            (part_loss * weight).backward()
            loss += part_loss.item() * weight
        results[f"loss/{step}"] = torch.tensor([loss], dtype=torch.float64)
        if step == 0:
            for name, value in model.named().items():
                results[f"gradient/{name}"] = value.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        results[f"norm/{step}"] = norm.reshape(1)
        optimizer.step()
        for name, value in model.named().items():
            results[f"state/{step}/{name}"] = value.detach().clone()
    return {f"{mode}/{name}": value for name, value in results.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    shapes = {
        "a.weight": (FEATURES, FEATURES),
        "f.weight": (CLASSES, FEATURES),
        "f.bias": (CLASSES,),
    }
    shapes.update({f"{name}.bias": (FEATURES,) for name in "ace"})
    start = {name: torch.randn(shape) * 0.4 for name, shape in shapes.items()}
    batches = [
        (torch.randn(BATCH, FEATURES), torch.randint(CLASSES, (BATCH,))) for _ in range(STEPS)
    ]
    write_safetensors(args.directory / "start.safetensors", start)
    write_safetensors(args.directory / "data.safetensors", {
        "inputs": torch.cat([inputs for inputs, _ in batches]),
        "targets": torch.cat([targets for _, targets in batches]),
    })
    results = {}
    for mode in ("float64", "bfloat16", "autocast"):
        results.update(train(start, batches, mode))
    write_safetensors(args.directory / "results.safetensors", results)


if __name__ == "__main__":
    main()
