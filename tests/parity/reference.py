"""What PyTorch computes for runs of parity_case.hpp. usage: reference.py DIRECTORY REQUEST.json

Writes into DIRECTORY
  start.safetensors            parameters and buffers at the start (exact in float32), tied ones once
  data.safetensors             `inputs` and `targets` of all steps, one behind the other
  UPDATE.safetensors           for each update that the request names:
    float64/logits/<step>        of the whole batch
    float64/loss/<step>          the same
    float64/norm/<step>          2-norm of all gradients before clipping
    float64/gradient/<name>      of the first step, before clipping
    float64/state/<step>/<name>  parameters and buffers after the first and the last step
    float32-error/<result>       for each of these results after the first step: how far plain
                                 PyTorch's float32 is from float64, the worst of several runs
    float32-plain-error/<result> the same of one run, row-major and on the inputs as they are

An activation within rounding of zero makes a ReLU let a gradient through in one run and not in
the next, which moves that layer's gradients a thousand times further than rounding does. One
float32 run is therefore no yardstick. The runs here are PyTorch in both memory formats, on the
inputs as they are and with every input moved to a neighbouring float32 number at random (for token
ids: with every number of the embedding moved): what float32 cannot tell apart.
"""

import argparse
import json
import pathlib

import torch

import models
from tensor_files import write_safetensors


MOVED_INPUTS = 4
SEED = 1


def neighbours(tensor, seed):
    """Each element moved to the next float32 number above or below, at random."""
    up = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    towards = torch.where(up, torch.tensor(float("inf")), torch.tensor(float("-inf")))
    return torch.nextafter(tensor, towards)


def move_embedding(start, seed):
    """The same for the values that tokens stand for."""
    name = "transformer.wte.weight"
    return {**start, name: neighbours(start[name], seed)}


def relative_error(value, exact):
    """Largest difference, relative to the largest element: the measure of the C++ side."""
    return ((value - exact).abs().max() / exact.abs().max().clamp(min=1e-30)).item()


def new_model(request):
    return models.build_for(request["model"], request["classes"])


def start_weights(request):
    """Weights as they are after some training: scales, shifts and statistics of norms that are not all
    equal, and nothing that is zero throughout, so that mixing them up shows."""
    model = new_model(request)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(0, 0.1)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5)
    for module in model.modules():
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.LayerNorm)):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.1)
    for parameter in model.parameters():
        if not parameter.detach().any():
            torch.nn.init.normal_(parameter, 0, 0.1)
    return {name: value.clone() for name, value in models.state_of(model).items()}


def load(model, start):
    """Sets the state; a tied parameter has only its first name in `start`."""
    model.load_state_dict(start, strict=start.keys() == model.state_dict().keys())


def draw_inputs(request, generator):
    shape = [request["batch"]] + request["inputs"]
    if request["vocabulary"]:
        return torch.randint(request["vocabulary"], shape, generator=generator)
    return torch.randn(shape, generator=generator)


def draw_targets(request, shape, generator):
    """For outputs of this shape: classes, or numbers to come near."""
    if len(shape) > 2 and not request["cross_entropy"]:
        return torch.randn(shape, generator=generator)
    targets = torch.randint(shape[-1], shape[:-1], generator=generator)
    if request["cross_entropy"]:
        return targets
    return torch.nn.functional.one_hot(targets, shape[-1]).to(torch.float32)


def draw_batches(request):
    generator = torch.Generator().manual_seed(SEED + 1)
    model = new_model(request).eval()
    batches = []
    for _ in range(request["steps"]):
        inputs = draw_inputs(request, generator)
        with torch.no_grad():
            shape = model(inputs).shape
        batches.append((inputs, draw_targets(request, shape, generator)))
    return batches


def new_optimizer(model, update):
    return torch.optim.SGD(
        model.parameters(), lr=update["lr"], momentum=update["momentum"],
        dampening=update["dampening"], weight_decay=update["weight_decay"],
        nesterov=update["nesterov"],
    )


def clip(model, update):
    """Clips the gradients; their norm before."""
    limit = update["clip"] if update["clip"] > 0 else float("inf")
    return torch.nn.utils.clip_grad_norm_(model.parameters(), limit).reshape(1)


def compare(criterion, output, targets):
    """PyTorch wants the classes in the second dimension."""
    if output.dim() > 2 and not targets.is_floating_point():
        return criterion(output.flatten(0, -2), targets.flatten())
    return criterion(output, targets)


def accumulate(request, model, batch, memory_format):
    """Gradients of a batch, cut into micro-batches; returns (logits, loss)."""
    criterion = torch.nn.CrossEntropyLoss() if request["cross_entropy"] else torch.nn.MSELoss()
    dtype = next(model.parameters()).dtype
    inputs, targets = batch
    if inputs.is_floating_point():
        inputs = inputs.to(dtype, memory_format=memory_format)
    if targets.is_floating_point():
        targets = targets.to(dtype)
    model.zero_grad()
    logits, loss = [], 0.0
    for begin in range(0, request["batch"], request["micro_batch"]):
        part = slice(begin, min(begin + request["micro_batch"], request["batch"]))
        weight = (part.stop - part.start) / request["batch"]
        output = model(inputs[part])
        part_loss = compare(criterion, output, targets[part])
        (part_loss * weight).backward()
        logits.append(output.detach())
        loss += part_loss.item() * weight
    return torch.cat(logits), torch.tensor([loss], dtype=torch.float64)


def exact_results(request, model, start, batches, update):
    """All results of one update, with a float64 model."""
    results = {}
    load(model, start)
    optimizer = new_optimizer(model, update)
    for step, batch in enumerate(batches):
        logits, loss = accumulate(request, model, batch, torch.contiguous_format)
        results[f"logits/{step}"] = logits
        results[f"loss/{step}"] = loss
        if step == 0:
            for name, parameter in model.named_parameters():
                results[f"gradient/{name}"] = parameter.grad.clone()
        results[f"norm/{step}"] = clip(model, update)
        optimizer.step()
        if step in (0, request["steps"] - 1):
            for name, value in models.state_of(model).items():
                results[f"state/{step}/{name}"] = value.clone()
    return results


def first_step(request, model, start, batch, memory_format):
    """Yields (update, result's name, value) of the first step. The gradients are computed once;
    `update` is None for what does not depend on it."""
    load(model, start)
    logits, loss = accumulate(request, model, batch, memory_format)
    yield None, "logits/0", logits
    yield None, "loss/0", loss
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    for (name, _), gradient in zip(model.named_parameters(), gradients):
        yield None, f"gradient/{name}", gradient
    for update_name, update in request["updates"].items():
        with torch.no_grad():
            for (name, parameter), gradient in zip(model.named_parameters(), gradients):
                parameter.copy_(start[name])
                parameter.grad.copy_(gradient)
        yield update_name, "norm/0", clip(model, update)
        new_optimizer(model, update).step()
        for name, value in models.state_of(model).items():
            yield update_name, f"state/0/{name}", value


def float32_errors(request, start, batch, exact):
    """The worst error of several runs, and that of a plain one, by update and result."""
    worst = {update: {} for update in exact}
    plain = {update: {} for update in exact}
    for memory_format in (torch.contiguous_format, torch.channels_last):
        model = new_model(request).to(memory_format=memory_format).train()
        for moved in range(MOVED_INPUTS + 1):
            moved_start, inputs = start, batch[0]
            if moved != 0 and inputs.is_floating_point():
                inputs = neighbours(inputs, SEED + 100 + moved)
            elif moved != 0:
                moved_start = move_embedding(start, SEED + 100 + moved)
            for update, name, value in first_step(
                request, model, moved_start, (inputs, batch[1]), memory_format
            ):
                value = value.detach().double()
                concerned = exact if update is None else [update]
                # What no update changes is the same in all of them.
                error = relative_error(value, exact[next(iter(concerned))][name].double())
                for each in concerned:
                    worst[each][name] = max(error, worst[each].get(name, 0.0))
                    if moved == 0 and memory_format == torch.contiguous_format:
                        plain[each][name] = error
    return worst, plain


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("request", type=pathlib.Path)
    args = parser.parse_args()
    request = json.loads(args.request.read_text())

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    start = start_weights(request)
    write_safetensors(args.directory / "start.safetensors", start)
    batches = draw_batches(request)
    write_safetensors(args.directory / "data.safetensors", {
        "inputs": torch.cat([inputs for inputs, _ in batches]),
        "targets": torch.cat([targets for _, targets in batches]),
    })

    model = new_model(request).double().train()
    exact = {
        name: exact_results(request, model, start, batches, update)
        for name, update in request["updates"].items()
    }
    errors = {}
    if request["float32"]:
        errors["float32-error"], errors["float32-plain-error"] = float32_errors(
            request, start, batches[0], exact
        )
    for update, results in exact.items():
        tensors = {f"float64/{name}": value for name, value in results.items()}
        for kind, by_update in errors.items():
            for name, error in by_update[update].items():
                tensors[f"{kind}/{name}"] = torch.tensor([error], dtype=torch.float64)
        write_safetensors(args.directory / f"{update}.safetensors", tensors)


if __name__ == "__main__":
    main()
