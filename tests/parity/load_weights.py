"""Loads weights that Troupe wrote into PyTorch's model, strictly, and writes what the model computes
in evaluation mode. usage: load_weights.py DIRECTORY MODEL CLASSES"""

import pathlib
import sys

import torch

import models
from tensor_files import read_safetensors, write_safetensors

directory = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
model = models.build_for(sys.argv[2], int(sys.argv[3])).double()
weights = read_safetensors(directory / "weights.safetensors")
assert weights.keys() == models.state_of(model).keys()
# A tied parameter is in the file once.
if sys.argv[2] == "small_gpt2":
    weights["lm_head.weight"] = weights["transformer.wte.weight"]
model.load_state_dict(weights, strict=True)
model.eval()
inputs = read_safetensors(directory / "inputs.safetensors")["inputs"]
with torch.no_grad():
    write_safetensors(directory / "outputs.safetensors", {"outputs": model(inputs)})
