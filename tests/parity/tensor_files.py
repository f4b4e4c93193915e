"""The safetensors format, written and read independently of Troupe: an 8-byte length, a JSON
header, raw little-endian data."""

import json
import struct

import torch

NAMES = {
    torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.int32: "I32",
    torch.uint8: "U8", torch.bool: "BOOL",
}


def write_safetensors(path, tensors):
    header = {}
    offset = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in tensors.values():
            file.write(tensor.contiguous().numpy().tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    types = {name: dtype for dtype, name in NAMES.items()}
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = types[entry["dtype"]]
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype) if end > begin else (
            torch.empty(0, dtype=dtype)
        )
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
