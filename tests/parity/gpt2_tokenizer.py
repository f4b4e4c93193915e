"""GPT-2's tokenizer, written from OpenAI's published encoder.py: its pattern, its characters for
bytes, its order of merges. gpt2_tokenizer.py DIRECTORY TEXT trains a small vocabulary on the file
TEXT and writes into DIRECTORY

  vocab.json, merges.txt   the tokenizer
  N.txt                    texts to encode; the first is TEXT
  tokens.safetensors       "N": the tokens of N.txt
  words.txt                every assigned character among letters, digits and spaces
  words.safetensors        "lengths": bytes in each of its words
"""

import collections
import json
import os
import random
import sys
import unicodedata

import regex
import torch

from tensor_files import write_safetensors

MERGES = 400
PATTERN = regex.compile(
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")


def bytes_to_unicode():
    visible = (list(range(ord("!"), ord("~") + 1)) + list(range(ord("¡"), ord("¬") + 1))
               + list(range(ord("®"), ord("ÿ") + 1)))
    characters = visible[:]
    extra = 0
    for byte in range(256):
        if byte not in visible:
            visible.append(byte)
            characters.append(256 + extra)
            extra += 1
    return dict(zip(visible, map(chr, characters)))


CHARACTERS = bytes_to_unicode()


def symbols(word):
    return tuple(CHARACTERS[byte] for byte in word.encode("utf-8"))


def joined(word, pair):
    """The word with each occurrence of the pair joined, from left to right."""
    result = []
    i = 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            result.append(word[i] + word[i + 1])
            i += 2
        else:
            result.append(word[i])
            i += 1
    return tuple(result)


def train(text):
    """Byte-pair encoding: the most frequent pair becomes a token, again and again."""
    words = collections.Counter(symbols(word) for word in PATTERN.findall(text))
    merges = []
    for _ in range(MERGES):
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        merged = collections.Counter()
        for word, count in words.items():
            merged[joined(word, best)] += count
        words = merged
    return merges


def encode(text, vocabulary, ranks):
    tokens = []
    known = {}
    for word in PATTERN.findall(text):
        if word not in known:
            parts = symbols(word)
            while len(parts) > 1:
                pair = min(zip(parts, parts[1:]), key=lambda p: ranks.get(p, float("inf")))
                if pair not in ranks:
                    break
                parts = joined(parts, pair)
            known[word] = [vocabulary[part] for part in parts]
        tokens += known[word]
    return tokens


def texts(sample):
    generator = random.Random(7)
    letters = sorted(set(sample))
    pairs = [sample[i:i + 3] for i in range(0, len(sample) - 3, 7)]
    yield sample
    # Pieces of its words side by side, so that merges meet in every order.
    yield "".join(generator.choice(pairs) for _ in range(20000))
    yield "".join(generator.choice(letters) for _ in range(20000))
    yield "".join(chr(generator.choice([
        generator.randrange(0x20, 0x7F), generator.randrange(0xA0, 0x250),
        generator.randrange(0x370, 0x1000), generator.randrange(0x2000, 0x2100),
        generator.randrange(0x4E00, 0x4F00), generator.randrange(0x1F600, 0x1F640)]))
        for _ in range(20000))
    yield "I'll say: we've  got\t\tit's 1st\r\n\r\n   <|endoftext|> don't 'stop' they'RE  \n "
    yield "a" * 5000 + " " * 500 + "the" * 1000


def assigned_characters():
    for code in range(0x110000):
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co"):
            yield chr(code)


def main(directory, sample_file):
    def path(name):
        return os.path.join(directory, name)

    with open(sample_file, encoding="utf-8", newline="") as file:
        sample = file.read()
    merges = train(sample)
    names = list(CHARACTERS.values()) + ["".join(pair) for pair in merges] + ["<|endoftext|>"]
    vocabulary = {name: number for number, name in enumerate(names)}
    assert len(vocabulary) == 256 + MERGES + 1
    with open(path("vocab.json"), "w", encoding="utf-8") as file:
        json.dump(vocabulary, file)
    with open(path("merges.txt"), "w", encoding="utf-8") as file:
        file.write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens = {}
    for number, text in enumerate(texts(sample)):
        with open(path(f"{number}.txt"), "w", encoding="utf-8", newline="") as file:
            file.write(text)
        tokens[str(number)] = torch.tensor(encode(text, vocabulary, ranks))
    write_safetensors(path("tokens.safetensors"), tokens)

    text = "".join(f"x{c}1{c} {c}  {c}{c}\n{c}" for c in assigned_characters())
    with open(path("words.txt"), "w", encoding="utf-8", newline="") as file:
        file.write(text)
    write_safetensors(path("words.safetensors"), {
        "lengths": torch.tensor([len(word.encode("utf-8")) for word in PATTERN.findall(text)])})


main(*sys.argv[1:])
