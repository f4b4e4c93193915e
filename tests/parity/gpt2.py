"""GPT-2 written with torch.nn alone: the arithmetic and the parameter names of Hugging Face's
GPT2LMHeadModel (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019)."""

import math

import torch
from torch import nn

SIZES = {  # layers, heads, width
    "gpt2": (12, 12, 768), "gpt2-medium": (24, 16, 1024),
    "gpt2-large": (36, 20, 1280), "gpt2-xl": (48, 25, 1600),
}


class Conv1D(nn.Module):
    """A linear map whose weight is (inputs, outputs)."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return x @ self.weight + self.bias


def gelu_new(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        samples, positions, width = x.shape
        query, key, value = (
            part.view(samples, positions, self.heads, -1).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        scores = query @ key.transpose(2, 3) / math.sqrt(width // self.heads)
        visible = torch.ones(positions, positions, dtype=torch.bool).tril()
        scores = torch.where(visible, scores, torch.finfo(scores.dtype).min)
        attended = torch.softmax(scores, dim=3) @ value
        return self.c_proj(attended.transpose(1, 2).reshape(samples, positions, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = Conv1D(4 * width, width)
        self.c_proj = Conv1D(width, 4 * width)

    def forward(self, x):
        return self.c_proj(gelu_new(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Transformer(nn.Module):
    def __init__(self, vocab_size, context, layers, heads, width):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class Gpt2(nn.Module):
    def __init__(self, layers, heads, width, vocab_size=50257, context=1024, tied=True):
        super().__init__()
        self.transformer = Transformer(vocab_size, context, layers, heads, width)
        self.lm_head = nn.Linear(width, vocab_size, bias=False)
        if tied:
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        return self.lm_head(self.transformer(tokens))


def published_tensors(model):
    """The state as the published files have it: without the prefix and the head, with the masks."""
    tensors = {}
    for name, value in model.state_dict().items():
        if name.startswith("transformer."):
            tensors[name[len("transformer."):]] = value
    context = model.transformer.wpe.num_embeddings
    for block in range(len(model.transformer.h)):
        mask = torch.ones(context, context).tril().view(1, 1, context, context)
        tensors[f"h.{block}.attn.bias"] = mask
        tensors[f"h.{block}.attn.masked_bias"] = torch.tensor(-1e4)
    return tensors
