"""What PyTorch computes for one parity case: the reference of parity_test.cpp.

Writes OUT/reference.safetensors with, for d of float64, float32 and float32-channels-last (plain
PyTorch in its other memory format: how far it is from itself),
  init/<name>            parameters and buffers at the start (float64, exact in float32)
  inputs/<step>, targets/<step>
  d/loss/<step>          of the whole batch
  d/norm/<step>          2-norm of all gradients before clipping
  d/gradient/<name>      of the first step, before clipping
  d/state/<step>/<name>  parameters and buffers after the first and (of float64) the last step
"""

import argparse
import pathlib

import torch
import torchvision

from tensor_files import write_safetensors


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
    runs = (
        ("float64", torch.float64, torch.contiguous_format),
        ("float32", torch.float32, torch.contiguous_format),
        ("float32-channels-last", torch.float32, torch.channels_last),
    )
    for prefix, dtype, memory_format in runs:

        def record(name, value, prefix=prefix):
            tensors[f"{prefix}/{name}"] = value.detach().clone()

        # Only float64 is compared after the first step.
        steps = batches if dtype == torch.float64 else batches[:1]
        run(args, dtype, memory_format, init, steps, record)
    write_safetensors(args.out / "reference.safetensors", tensors)


if __name__ == "__main__":
    main()
