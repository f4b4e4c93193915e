"""Writes the weights of a small GPT-2 as the published files have them, some token ids, and what the
model computes for them. usage: published_gpt2.py DIRECTORY MODEL"""

import pathlib
import sys

import torch

import gpt2
import models
from tensor_files import write_safetensors

directory = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
torch.manual_seed(4)
model = models.build(sys.argv[2]).double()
write_safetensors(directory / "model.safetensors", {
    name: value.float() for name, value in gpt2.published_tensors(model).items()})
model = model.float().double()  # what float32 holds of it
tokens = torch.randint(50, (3, 9))
with torch.no_grad():
    write_safetensors(directory / "expected.safetensors", {
        "inputs": tokens, "outputs": model(tokens)})
