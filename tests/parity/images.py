"""Images read and prepared by Pillow and torchvision.

images.py make DIRECTORY: writes DIRECTORY/images, a folder for torchvision's ImageFolder with the
    kinds of JPEG and PNG files there are, and DIRECTORY/centre.safetensors with what ImageFolder,
    Resize, CenterCrop and Normalize make of it: "labels", "pixels" (uint8), "normalised", and
    "sizes", the width and height of each image.
images.py crop DIRECTORY: cuts the parts that DIRECTORY/boxes.safetensors names ("boxes": left, top,
    width, height of each image) out, resizes and mirrors them: "pixels" of crops.safetensors.
images.py cifar DIRECTORY: writes CIFAR-10 and CIFAR-100 files with numpy, and in cifar.safetensors
    what torchvision's transforms make of the arrays.
"""

import os
import sys

import numpy
import torch
from PIL import Image
from torchvision import transforms
from torchvision.datasets import ImageFolder

from tensor_files import read_safetensors, write_safetensors

RESIZE, SIZE, CROP_SIZE = 40, 32, 24
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def picture(generator, width, height):
    """Smooth colours with noise on them, so that every interpolation shows."""
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    planes = [
        127 + 90 * numpy.sin(x / (3 + 2 * c) + c) * numpy.cos(y / (4 + c))
        + generator.normal(0, 20, (height, width))
        for c in range(3)
    ]
    return Image.fromarray(numpy.stack(planes, 2).clip(0, 255).astype(numpy.uint8))


def make_images(root):
    generator = numpy.random.default_rng(3)
    files = {
        "b/colour.jpg": ((120, 80), {}),
        "b/sharp.jpeg": ((37, 61), {"quality": 100, "subsampling": 0}),
        "b/progressive.JPG": ((64, 64), {"progressive": True, "quality": 50}),
        "b/restart.jpg": ((97, 45), {"subsampling": 1, "quality": 80}),
        "a class/grey.jpg": ((50, 90), {"mode": "L"}),
        "a class/ink.jpg": ((70, 41), {"mode": "CMYK"}),
        "a class/small.png": ((9, 16), {}),
        "a class/b/inner.png": ((40, 40), {}),
        "a class/b-2/inner.png": ((1, 33), {}),
        "a class/Z.png": ((200, 31), {}),
        "Upper/clear.png": ((45, 60), {"mode": "RGBA"}),
        "Upper/palette.png": ((60, 45), {"mode": "P"}),
        "Upper/clear_palette.png": ((60, 44), {"mode": "P", "transparency": 3}),
        "Upper/grey.png": ((48, 48), {"mode": "L"}),
        "Upper/grey_alpha.png": ((41, 48), {"mode": "LA"}),
        "Upper/two.png": ((33, 47), {"mode": "1"}),
    }
    for name, (size, options) in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        options = dict(options)
        image = picture(generator, *size)
        mode = options.pop("mode", "RGB")
        if mode in ("RGBA", "LA"):
            image.putalpha(Image.fromarray(
                generator.integers(0, 256, size[::-1]).astype(numpy.uint8)))
        image = image.quantize(20) if mode == "P" else image.convert(mode)
        image.save(path, **options)


def make(directory):
    root = os.path.join(directory, "images")
    make_images(root)
    cut = transforms.Compose([
        transforms.Resize(RESIZE), transforms.CenterCrop(SIZE)])
    normalise = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    folder = ImageFolder(root)
    images = [image for image, _ in folder]
    write_safetensors(os.path.join(directory, "centre.safetensors"), {
        "labels": torch.tensor([label for _, label in folder]),
        "pixels": torch.stack([transforms.PILToTensor()(cut(image)) for image in images]),
        "normalised": torch.stack([normalise(cut(image)) for image in images]),
        "sizes": torch.tensor([image.size for image in images]),
    })


def crop(directory):
    boxes = read_safetensors(os.path.join(directory, "boxes.safetensors"))["boxes"].tolist()
    folder = ImageFolder(os.path.join(directory, "images"))
    crops = []
    for (image, _), (left, top, width, height) in zip(folder, boxes):
        part = transforms.functional.resized_crop(
            image, top, left, height, width, [CROP_SIZE, CROP_SIZE])
        crops.append(transforms.PILToTensor()(transforms.functional.hflip(part)))
    write_safetensors(os.path.join(directory, "crops.safetensors"), {"pixels": torch.stack(crops)})


def cifar(directory):
    generator = numpy.random.default_rng(5)
    tensors = {}

    def write(name, count, classes):
        labels = numpy.stack([generator.integers(0, n, count) for n in classes], 1)
        pixels = generator.integers(0, 256, (count, 3072))
        records = numpy.concatenate([labels, pixels], 1).astype(numpy.uint8)
        records.tofile(os.path.join(directory, name))
        # As torchvision's CIFAR10 reads them: rows, columns, channels.
        arrays = pixels.astype(numpy.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return labels, [Image.fromarray(array) for array in arrays]

    def keep(name, labels, images, mean, std):
        normalise = transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean, std)])
        tensors[name + ".labels"] = torch.from_numpy(labels).long()
        tensors[name + ".inputs"] = torch.stack([normalise(image) for image in images])

    parts = [write(f"data_batch_{i}.bin", 7, [10]) for i in range(1, 6)]
    keep("train_10", numpy.concatenate([labels for labels, _ in parts])[:, 0],
         [image for _, images in parts for image in images],
         (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    labels, images = write("test.bin", 6, [20, 100])
    for i, name in enumerate(("coarse", "fine")):
        keep(name, labels[:, i], images, (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
    write_safetensors(os.path.join(directory, "cifar.safetensors"), tensors)


{"make": make, "crop": crop, "cifar": cifar}[sys.argv[1]](sys.argv[2])
