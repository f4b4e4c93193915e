"""Prints the parameters and then the buffers of each model named, in order, one a line: model,
kind, name, shape. usage: model_tensors.py MODEL..."""

import sys

import models

models.without_initialisation()
for model_name in sys.argv[1:]:
    model = models.build(model_name)
    for kind, tensors in (("parameter", model.named_parameters()),
                          ("buffer", model.named_buffers())):
        for name, tensor in tensors:
            print(model_name, kind, name, list(tensor.shape))
    del model
