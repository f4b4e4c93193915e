"""What PyTorch computes for one parity case: the reference of parity_test.cpp.

Writes OUT/reference.safetensors with
  init/<name>                  parameters and buffers at the start (float64, exact in float32)
  inputs/<step>, targets/<step>
  float64/loss/<step>          of the whole batch
  float64/norm/<step>          2-norm of all gradients before clipping
  float64/gradient/<name>      of the first step, before clipping
  float64/state/<step>/<name>  parameters and buffers after the first and the last step
  float32-error/<result>       for each of these results after the first step: how far plain
                               PyTorch's float32 is from float64, the worst of several runs

An activation within rounding of zero makes a ReLU let a gradient through in one run and not in
the next, which moves that layer's gradients a thousand times further than rounding does. One
float32 run is therefore no yardstick. The runs here are PyTorch in both memory formats, on the
inputs as they are and with every input moved to a neighbouring float32 number at random: what
float32 cannot tell apart.
"""

import argparse
import pathlib

import torch
import torchvision

from tensor_files import write_safetensors


MOVED_INPUTS = 4


def neighbours(tensor, seed):
    """Each element moved to the next float32 number above or below, at random."""
    up = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    towards = torch.where(up, torch.tensor(float("inf")), torch.tensor(float("-inf")))
    return torch.nextafter(tensor, towards)


def relative_error(value, exact):
    """Largest difference, relative to the largest element: the measure of the C++ side."""
    return ((value - exact).abs().max() / exact.abs().max().clamp(min=1e-30)).item()


def targets_for(args, generator):
    classes = torch.randint(args.classes, (args.batch,), generator=generator)
    if args.loss == "cross_entropy":
        return classes
    return torch.nn.functional.one_hot(classes, args.classes).to(torch.float32)


def make_model(args):
    model = getattr(torchvision.models, f"resnet{args.depth}")(num_classes=args.classes)
    # Weights as they are after some training: batch-norm scales and shifts, and statistics, that
    # are not all equal, so that mixing them up shows.
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0, 0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.1)
    return model


def run(args, dtype, memory_format, init, batches, record):
    model = getattr(torchvision.models, f"resnet{args.depth}")(num_classes=args.classes)
    model.load_state_dict(init)
    model.to(dtype, memory_format=memory_format).train()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr, momentum=args.momentum, dampening=args.dampening,
        weight_decay=args.weight_decay, nesterov=args.nesterov,
    )
    criterion = torch.nn.MSELoss() if args.loss == "mse" else torch.nn.CrossEntropyLoss()
    for step, (inputs, targets) in enumerate(batches):
        inputs = inputs.to(dtype, memory_format=memory_format)
        if targets.is_floating_point():
            targets = targets.to(dtype)
        optimizer.zero_grad()
        loss = 0.0
        for begin in range(0, args.batch, args.micro_batch):
            part = slice(begin, min(begin + args.micro_batch, args.batch))
            weight = (part.stop - part.start) / args.batch
            output = model(inputs[part])
            part_loss = criterion(output, targets[part])
            (part_loss * weight).backward()
            loss += part_loss.item() * weight
        record(f"loss/{step}", torch.tensor([loss], dtype=torch.float64))
        if step == 0:
            for name, parameter in model.named_parameters():
                record(f"gradient/{name}", parameter.grad)
        limit = args.clip if args.clip > 0 else float("inf")
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
        record(f"norm/{step}", norm.reshape(1))
        optimizer.step()
        if step in (0, args.steps - 1):
            for name, value in model.state_dict().items():
                record(f"state/{step}/{name}", value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--depth", type=int, required=True)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--micro-batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--loss", choices=["mse", "cross_entropy"], required=True)
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--momentum", type=float, default=0)
    parser.add_argument("--dampening", type=float, default=0)
    parser.add_argument("--weight-decay", type=float, default=0)
    parser.add_argument("--nesterov", action="store_true")
    parser.add_argument("--clip", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed + 1)
    init = {name: value.clone() for name, value in make_model(args).state_dict().items()}
    batches = [
        (
            torch.randn(args.batch, 3, args.image, args.image, generator=generator),
            targets_for(args, generator),
        )
        for _ in range(args.steps)
    ]
    tensors = {f"init/{name}": value for name, value in init.items()}
    for step, (inputs, targets) in enumerate(batches):
        tensors[f"inputs/{step}"] = inputs
        tensors[f"targets/{step}"] = targets

    def record_exact(name, value):
        tensors[f"float64/{name}"] = value.detach().clone()

    run(args, torch.float64, torch.contiguous_format, init, batches, record_exact)

    errors = {}

    def record_error(name, value):
        error = relative_error(value.detach().double(), tensors[f"float64/{name}"].double())
        errors[name] = max(error, errors.get(name, 0.0))

    inputs, targets = batches[0]
    for moved in range(MOVED_INPUTS + 1):
        batch = (inputs if moved == 0 else neighbours(inputs, args.seed + 100 + moved), targets)
        for memory_format in (torch.contiguous_format, torch.channels_last):
            run(args, torch.float32, memory_format, init, [batch], record_error)
    for name, error in errors.items():
        tensors[f"float32-error/{name}"] = torch.tensor([error], dtype=torch.float64)
    write_safetensors(args.out / "reference.safetensors", tensors)


if __name__ == "__main__":
    main()
