"""Prints the parameters and then the buffers of torchvision's residual network, in order, one a
line: kind, name, shape. usage: model_tensors.py DEPTH"""

import sys

import torchvision

model = getattr(torchvision.models, f"resnet{sys.argv[1]}")()
for kind, tensors in (("parameter", model.named_parameters()), ("buffer", model.named_buffers())):
    for name, tensor in tensors:
        print(kind, name, list(tensor.shape))
