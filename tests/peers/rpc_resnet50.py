"""ResNet-50 cut before layer3 over two processes with PyTorch RPC: the peer of the origin job.

The first half lives in the driving process, the second half in a worker. Each batch is cut into
micro-batches whose forwards are pipelined over asynchronous RPC; distributed autograd computes
the gradients of the mean squared error against one-hot targets, and a distributed SGD applies
them. Prints one JSON object: seconds of every step.

Run with Debian's interpreter: /usr/bin/python3 tests/peers/rpc_resnet50.py --micro-batch 2
"""

import argparse
import json
import os
import socket
import threading
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef
from torchvision.models import resnet50

CLASSES = 1000


class Half(nn.Module):
    """One half of ResNet-50. A lock keeps micro-batches from interleaving inside it."""

    def __init__(self, first):
        super().__init__()
        whole = resnet50()
        if first:
            self.layers = nn.Sequential(
                whole.conv1, whole.bn1, whole.relu, whole.maxpool, whole.layer1, whole.layer2
            )
        else:
            self.layers = nn.Sequential(
                whole.layer3, whole.layer4, whole.avgpool, nn.Flatten(1), whole.fc
            )
        self.lock = threading.Lock()

    def forward(self, x_rref):
        x = x_rref.to_here()
        with self.lock:
            return self.layers(x)

    def parameter_rrefs(self):
        return [RRef(p) for p in self.parameters()]


def call_forward(half, x_rref):
    return half.local_value()(x_rref)


def call_parameters(half):
    return half.local_value().parameter_rrefs()


class Pipeline:
    def __init__(self, micro_batch):
        self.micro_batch = micro_batch
        self.first = rpc.remote("driver", Half, args=(True,))
        self.second = rpc.remote("worker", Half, args=(False,))

    def parameters(self):
        rrefs = rpc.rpc_sync("driver", call_parameters, args=(self.first,))
        return rrefs + rpc.rpc_sync("worker", call_parameters, args=(self.second,))

    def forward(self, inputs):
        outputs = []
        for part in inputs.split(self.micro_batch):
            hidden = rpc.remote("driver", call_forward, args=(self.first, RRef(part)))
            outputs.append(rpc.rpc_async("worker", call_forward, args=(self.second, hidden)))
        return torch.cat(torch.futures.wait_all(outputs))


def drive(args):
    torch.manual_seed(42)
    model = Pipeline(args.micro_batch)
    optimizer = DistributedOptimizer(torch.optim.SGD, model.parameters(), lr=0.05)
    loss_function = nn.MSELoss()
    targets = torch.zeros(args.batch, CLASSES).scatter_(
        1, torch.randint(CLASSES, (args.batch, 1)), 1.0
    )
    seconds = []
    for _ in range(args.steps):
        inputs = torch.randn(args.batch, 3, args.image, args.image)
        start = time.perf_counter()
        with dist_autograd.context() as context:
            loss = loss_function(model.forward(inputs), targets)
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"micro_batch": args.micro_batch, "seconds": seconds}))


def run(rank, args):
    torch.set_num_threads(args.threads)
    rpc.init_rpc(
        "driver" if rank == 0 else "worker",
        rank=rank,
        world_size=2,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
            num_worker_threads=128, rpc_timeout=300, init_method=f"tcp://127.0.0.1:{args.port}"
        ),
    )
    if rank == 0:
        drive(args)
    rpc.shutdown()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image", type=int, default=128)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    arguments.port = free_port()
    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    mp.spawn(run, args=(arguments,), nprocs=2)
