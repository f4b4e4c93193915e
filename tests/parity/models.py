"""The models that are compared, by name: torchvision's own, the sizes of GPT-2, and small ones of
every family that a test can train."""

import torch
import torchvision
from torch import nn
from torchvision.models.resnet import Bottleneck, ResNet
from torchvision.models.vgg import VGG, make_layers
from torchvision.models.vision_transformer import VisionTransformer

import gpt2


def small_vgg(batch_norm):
    """VGG-11 with an eighth of the channels and 32 hidden features."""
    channels = [8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"]
    model = VGG(make_layers(channels, batch_norm), num_classes=10, init_weights=False)
    model.classifier = nn.Sequential(
        nn.Linear(64 * 7 * 7, 32), nn.ReLU(), nn.Dropout(0),
        nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0),
        nn.Linear(32, 10),
    )
    return model


class FlatMlp(torchvision.ops.MLP):
    def forward(self, x):
        return super().forward(x.flatten(1))


SMALL = {
    "small_resnext": lambda: ResNet(
        Bottleneck, [1, 1, 1, 1], num_classes=10, groups=32, width_per_group=4),
    "small_wide_resnet": lambda: ResNet(
        Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=128),
    "small_vgg": lambda: small_vgg(False),
    "small_vgg_bn": lambda: small_vgg(True),
    "small_mlp": lambda: FlatMlp(192, [20, 12, 10], activation_layer=nn.GELU, inplace=None),
    "small_vit": lambda: VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=40,
        num_classes=10),
    "small_gpt2": lambda: gpt2.Gpt2(2, 2, 16, vocab_size=50, context=12),
    "small_gpt2_untied": lambda: gpt2.Gpt2(2, 2, 16, vocab_size=50, context=12, tied=False),
}


def build(name):
    if name in SMALL:
        return SMALL[name]()
    if name in gpt2.SIZES:
        return gpt2.Gpt2(*gpt2.SIZES[name])
    return getattr(torchvision.models, name)()


def build_for(name, classes):
    """torchvision's model by this name for this number of classes, or a small one, which has ten."""
    if name in SMALL:
        return SMALL[name]()
    return getattr(torchvision.models, name)(num_classes=classes)


def state_of(model):
    """Parameters and buffers, a tied parameter only under its first name."""
    seen = set()
    tensors = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if isinstance(value, nn.Parameter):
            if id(value) in seen:
                continue
            seen.add(id(value))
        tensors[name] = value.detach()
    return tensors


def without_initialisation():
    """From here on models are built without numbers: their sizes are all that is wanted."""
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, lambda tensor, *args, **kwargs: tensor)
