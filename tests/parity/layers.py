"""What PyTorch computes, in float64, for single layers in training mode: the reference of
layer_parity_test.cpp. usage: layers.py OUT.safetensors

For each CASE, with every number exact in float32:
  CASE/start/<tensor>                parameters and buffers, by the names of Troupe's layer
  CASE/inputs, CASE/targets          targets for losses only
  CASE/output_gradient               for all but losses, whose gradient begins with 1
  CASE/expected/output               or the loss
  CASE/expected/input_gradient
  CASE/expected/gradient/<parameter>
  CASE/expected/state/<buffer>       after the forward
"""

import copy
import pathlib
import sys
from collections import OrderedDict

import torch
import torchvision
from torch import nn

import gpt2
from tensor_files import write_safetensors


def vary_batch_norm(module):
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, 0, 0.1)
    return module


def pass_through(convolution, norm):
    """The convolution passes its input on and the shift keeps every output positive, so that
    neither it nor a ReLU after it is what is compared."""
    with torch.no_grad():
        convolution.weight.zero_()
        middle = convolution.kernel_size[0] // 2
        for channel in range(convolution.out_channels):
            convolution.weight[channel, channel, middle, middle] = 1
        norm.bias.fill_(20)


def stem(channels, kernel, stride):
    return (
        nn.Conv2d(channels, 64, kernel, stride, (kernel - 1) // 2, bias=False),
        vary_batch_norm(nn.BatchNorm2d(64)),
    )


def block(depth, group):
    model = getattr(torchvision.models, f"resnet{depth}")()
    return vary_batch_norm(getattr(model, group)[0])


class AddPositions(nn.Module):
    """What GPT-2 adds to the embedding of its tokens."""

    def __init__(self, rows, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, features))

    def forward(self, x):
        return x + self.weight[:x.shape[1]]


class VitEmbedding(torchvision.models.VisionTransformer):
    """The part of torchvision's VisionTransformer before its encoder's layers."""

    def forward(self, x):
        token = self.class_token.expand(len(x), -1, -1)
        return torch.cat([token, self._process_input(x)], dim=1) + self.encoder.pos_embedding


class VitHead(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.heads = model.heads

    def forward(self, x):
        return self.heads(x[:, 0])


def vary_zeros(module):
    for parameter in module.parameters():
        if not parameter.detach().any():
            nn.init.normal_(parameter, 0, 0.1)
    return module


def named(**modules):
    return nn.Sequential(OrderedDict(modules))


def image_cases():
    yield "conv2d", named(c=nn.Conv2d(6, 10, 3, stride=2, padding=1, groups=2)), "", (3, 6, 7, 9)
    yield "batch_norm2d", named(n=vary_batch_norm(nn.BatchNorm2d(5))), "", (3, 5, 4, 6)
    yield "max_pool2d", nn.MaxPool2d(3, 2, 1), "", (2, 3, 9, 8)
    yield "adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((3, 2)), "", (2, 4, 7, 9)
    yield "grouped_bottleneck", vary_batch_norm(
        torchvision.models.resnext50_32x4d().layer2[0]), "layer2.0.", (2, 256, 8, 8)
    vgg = torchvision.models.vgg.make_layers([8, "M", 16, "M"])
    yield "vgg_convolution", VggPart(vgg, 3, 6), "", (2, 8, 6, 6)
    vit = vary_zeros(VitEmbedding(
        image_size=8, patch_size=4, num_layers=1, num_heads=2, hidden_dim=12, mlp_dim=20,
        num_classes=10))
    yield "vit_embedding", vit, "", (3, 3, 8, 8)
    vit = copy.deepcopy(vit).float()
    vit.zero_grad(set_to_none=True)
    yield "vit_block", vit.encoder.layers[0], "encoder.layers.encoder_layer_0.", (3, 5, 12)
    yield "vit_head", VitHead(vit), "", (3, 5, 12)


class VggPart(nn.Module):
    """Modules of torchvision's `features` under the names that they have there."""

    def __init__(self, features, begin, end):
        super().__init__()
        self.features = nn.Sequential(OrderedDict(
            (str(index), features[index]) for index in range(begin, end)))

    def forward(self, x):
        return self.features(x)


def token_cases():
    yield "gelu", nn.GELU(), "", (6, 7)
    yield "gelu_tanh", nn.GELU(approximate="tanh"), "", (6, 7)
    yield "layer_norm", named(l=vary_zeros(nn.LayerNorm(7, eps=1e-3))), "", (3, 4, 7)
    yield "embedding", named(e=nn.Embedding(5, 7)), "", torch.randint(5, (3, 4))
    yield "position_embedding", named(p=AddPositions(6, 7)), "", (3, 4, 7)
    yield "gpt2_block", vary_zeros(gpt2.Block(12, 3)), "transformer.h.0.", (3, 5, 12)


def cases():
    """Yields (name, module, prefix of its tensors' names, inputs or the shape of random ones)."""
    yield "linear", nn.Sequential(OrderedDict(linear=nn.Linear(7, 5))), "", (6, 7)
    yield "relu", nn.ReLU(), "", (6, 7)
    yield "tanh", nn.Tanh(), "", (6, 7)
    yield from image_cases()
    yield from token_cases()
    conv1, bn1 = stem(3, 7, 2)
    pool = nn.MaxPool2d(3, 2, 1)
    yield "stem", nn.Sequential(
        OrderedDict(conv1=conv1, bn1=bn1, relu=nn.ReLU(), maxpool=pool)
    ), "", (2, 3, 16, 16)
    conv1, bn1 = stem(64, 3, 1)
    pass_through(conv1, bn1)
    yield "batch_norm", nn.Sequential(OrderedDict(conv1=conv1, bn1=bn1)), "", (3, 64, 5, 5)
    conv1, bn1 = stem(64, 7, 2)
    pass_through(conv1, bn1)
    yield "max_pool", nn.Sequential(
        OrderedDict(conv1=conv1, bn1=bn1, maxpool=pool)
    ), "", (3, 64, 10, 10)
    yield "basic_block", block(18, "layer2"), "layer2.0.", (3, 64, 8, 8)
    yield "bottleneck", block(50, "layer2"), "layer2.0.", (3, 256, 8, 8)
    yield "head", nn.Sequential(
        OrderedDict(pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(512, 10))
    ), "", (3, 512, 4, 4)


def tokens(loss):
    """PyTorch has the classes in the second dimension, Troupe in the last."""
    return lambda outputs, targets: loss(
        outputs.transpose(1, -1), targets.transpose(1, -1) if targets.dim() == 3 else targets
    )


def some_ignored(targets, index):
    targets[torch.rand(targets.shape) < 0.4] = index
    return targets


def losses():
    """Yields (name, loss, outputs of the model, targets)."""
    numbers = (6, 10)
    yield "mse", nn.MSELoss(), torch.randn(numbers), torch.randn(numbers)
    yield "l1", nn.L1Loss(), torch.randn(numbers), torch.randn(numbers)
    yield "huber", nn.HuberLoss(), 3 * torch.randn(numbers), torch.randn(numbers)
    yield "huber_delta", nn.HuberLoss(delta=0.25), torch.randn(numbers), torch.randn(numbers)
    yield "bce", nn.BCEWithLogitsLoss(), 3 * torch.randn(numbers), torch.rand(numbers)
    weights = torch.arange(1, 11, dtype=torch.float64) / 4
    yield "bce_weights", nn.BCEWithLogitsLoss(pos_weight=weights), torch.randn(
        3, 4, 10
    ), torch.rand(3, 4, 10)
    yield "bce_weight", nn.BCEWithLogitsLoss(
        pos_weight=torch.tensor([2.5], dtype=torch.float64)
    ), torch.randn(numbers), torch.rand(numbers)

    def classes(*shape):
        return torch.randint(10, shape)

    yield "cross_entropy", nn.CrossEntropyLoss(), 3 * torch.randn(numbers), classes(6)
    yield "cross_entropy_smoothed", nn.CrossEntropyLoss(label_smoothing=0.1), torch.randn(
        numbers
    ), classes(6)
    yield "cross_entropy_ignored", nn.CrossEntropyLoss(), torch.randn(20, 10), some_ignored(
        classes(20), -100
    )
    yield "cross_entropy_ignore_index", nn.CrossEntropyLoss(
        ignore_index=3, label_smoothing=0.2
    ), torch.randn(20, 10), some_ignored(classes(20), 3)
    yield "cross_entropy_tokens", tokens(nn.CrossEntropyLoss(label_smoothing=0.1)), torch.randn(
        4, 5, 10
    ), some_ignored(classes(4, 5), -100)
    yield "cross_entropy_probabilities", nn.CrossEntropyLoss(label_smoothing=0.1), torch.randn(
        numbers
    ), torch.randn(numbers).softmax(1)
    yield "cross_entropy_token_probabilities", tokens(nn.CrossEntropyLoss()), torch.randn(
        4, 5, 10
    ), torch.randn(4, 5, 10).softmax(2)


def gradients(name, inputs, module, prefix, tensors):
    if inputs.is_floating_point():
        tensors[f"{name}/expected/input_gradient"] = inputs.grad
    for parameter_name, parameter in module.named_parameters():
        if parameter.grad is None:
            continue  # of a part of the model that is not compared
        tensors[f"{name}/expected/gradient/{prefix}{parameter_name}"] = parameter.grad


def layer_tensors(name, module, prefix, inputs, tensors):
    for tensor_name, value in module.state_dict().items():
        tensors[f"{name}/start/{prefix}{tensor_name}"] = value.clone()
    if isinstance(inputs, tuple):
        inputs = torch.randn(inputs)
    tensors[f"{name}/inputs"] = inputs.clone()
    if inputs.is_floating_point():
        inputs = inputs.double().requires_grad_()
    module = module.double().train()
    output = module(inputs)
    output_gradient = torch.randn(output.shape)
    tensors[f"{name}/output_gradient"] = output_gradient
    output.backward(output_gradient.double())
    tensors[f"{name}/expected/output"] = output.detach()
    gradients(name, inputs, module, prefix, tensors)
    for buffer_name, value in module.named_buffers():
        tensors[f"{name}/expected/state/{prefix}{buffer_name}"] = value


def loss_tensors(name, module, inputs, targets, tensors):
    tensors[f"{name}/inputs"] = inputs.clone()
    tensors[f"{name}/targets"] = targets
    inputs = inputs.double().requires_grad_()
    loss = module(inputs, targets.double() if targets.is_floating_point() else targets)
    loss.backward()
    tensors[f"{name}/expected/output"] = loss.detach().reshape(1)
    tensors[f"{name}/expected/input_gradient"] = inputs.grad


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    tensors = {}
    for name, module, prefix, inputs in cases():
        layer_tensors(name, module, prefix, inputs, tensors)
    for name, loss, inputs, targets in losses():
        loss_tensors(name, loss, inputs, targets, tensors)
    write_safetensors(pathlib.Path(sys.argv[1]), {k: v.detach() for k, v in tensors.items()})


if __name__ == "__main__":
    main()
