"""Weights after 20 steps of PyTorch's optimizers from the same weights and gradients, and of LAMB by
the formula of its paper in float64. Writes everything to the safetensors file named."""

import sys

import torch

from tensor_files import write_safetensors

STEPS = 20
SHAPES = {"a.weight": (7, 5), "a.bias": (7,), "b.weight": (4, 3, 3, 3)}


def group(names, **options):
    return names, options


CASES = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    "sgd_nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.8, "nesterov": True}),
    "adam": (torch.optim.Adam, {}),
    "adam_options": (torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-5,
                                        "weight_decay": 0.1, "amsgrad": True}),
    "adamw": (torch.optim.AdamW, {}),
    "adamw_options": (torch.optim.AdamW, {"lr": 0.02, "weight_decay": 0.3, "amsgrad": True}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "rmsprop_options": (torch.optim.RMSprop, {"lr": 0.003, "alpha": 0.9, "eps": 1e-6,
                                              "weight_decay": 0.05, "momentum": 0.7,
                                              "centered": True}),
    "groups": (torch.optim.AdamW, {"lr": 0.01},
               group(["a.bias"], weight_decay=0.0), group(["b.weight"], lr=0.05)),
}


def lamb(parameters, gradients, lr=0.02, betas=(0.9, 0.999), eps=1e-6, decay=0.01):
    result = {name: value.double().clone() for name, value in parameters.items()}
    mean = {name: torch.zeros_like(value) for name, value in result.items()}
    square = {name: torch.zeros_like(value) for name, value in result.items()}
    for step, of_step in enumerate(gradients, 1):
        for name, weight in result.items():
            gradient = of_step[name].double()
            mean[name] = betas[0] * mean[name] + (1 - betas[0]) * gradient
            square[name] = betas[1] * square[name] + (1 - betas[1]) * gradient ** 2
            ratio = (mean[name] / (1 - betas[0] ** step)) / (
                (square[name] / (1 - betas[1] ** step)).sqrt() + eps)
            update = ratio + decay * weight
            trust = 1.0
            if weight.norm() > 0 and update.norm() > 0:
                trust = weight.norm() / update.norm()
            result[name] = weight - lr * trust * update
    return {name: value.float() for name, value in result.items()}


def run(kind, options, groups, initial, gradients):
    parameters = {name: torch.nn.Parameter(value.clone()) for name, value in initial.items()}
    grouped = {name for names, _ in groups for name in names}
    description = [{"params": [p for name, p in parameters.items() if name not in grouped]}]
    description += [{"params": [parameters[name] for name in names], **own}
                    for names, own in groups]
    optimizer = kind([d for d in description if d["params"]], **options)
    for of_step in gradients:
        for name, parameter in parameters.items():
            parameter.grad = of_step[name].clone()
        optimizer.step()
    return {name: parameter.detach() for name, parameter in parameters.items()}


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(7)
    initial = {name: torch.randn(shape) for name, shape in SHAPES.items()}
    gradients = [{name: torch.randn(shape) for name, shape in SHAPES.items()}
                 for _ in range(STEPS)]
    tensors = {"initial/" + name: value for name, value in initial.items()}
    for step, of_step in enumerate(gradients):
        tensors.update({f"gradient/{step}/{name}": value for name, value in of_step.items()})
    for case, (kind, options, *groups) in CASES.items():
        for name, value in run(kind, options, groups, initial, gradients).items():
            tensors[f"{case}/{name}"] = value
    for name, value in lamb(initial, gradients).items():
        tensors["lamb/" + name] = value
    write_safetensors(path, tensors)


if __name__ == "__main__":
    main(sys.argv[1])
