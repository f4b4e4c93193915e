"""Loads weights that Troupe wrote into torchvision's model, strictly, and writes what the model
computes in evaluation mode. usage: load_weights.py DIRECTORY DEPTH CLASSES"""

import pathlib
import sys

import torch
import torchvision

from tensor_files import read_safetensors, write_safetensors

directory = pathlib.Path(sys.argv[1])
torch.set_num_threads(1)
model = getattr(torchvision.models, f"resnet{sys.argv[2]}")(num_classes=int(sys.argv[3])).double()
model.load_state_dict(read_safetensors(directory / "weights.safetensors"), strict=True)
model.eval()
inputs = read_safetensors(directory / "inputs.safetensors")["inputs"]
with torch.no_grad():
    write_safetensors(directory / "outputs.safetensors", {"outputs": model(inputs)})
