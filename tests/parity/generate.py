"""A small GPT-2 of bytes continues texts, greedily. usage: generate.py DIRECTORY TOKENS PROMPT...

Writes weights.safetensors into DIRECTORY and prints the tokens of each text, prompt and
continuation, on a line each. A text longer than the model's context is continued from its last
tokens. In float64, so that no tie is decided by rounding.
"""

import pathlib
import sys

import torch

import gpt2
from tensor_files import write_safetensors

CONTEXT = 12


def main():
    directory, count, prompts = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    torch.manual_seed(5)
    model = gpt2.Gpt2(2, 2, 16, vocab_size=256, context=CONTEXT).double().eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() == 2:  # so that texts are not one token over and over
                value.normal_(std=0.5)
    tensors = {name: value for name, value in model.state_dict().items()
               if name != "lm_head.weight"}
    write_safetensors(directory / "weights.safetensors", tensors)
    for prompt in prompts:
        tokens = list(prompt.encode())
        with torch.no_grad():
            for _ in range(count):
                scores = model(torch.tensor([tokens[-CONTEXT:]]))[0, -1]
                tokens.append(int(scores.argmax()))
        print(*tokens)


if __name__ == "__main__":
    main()
