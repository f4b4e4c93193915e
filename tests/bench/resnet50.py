"""The origin job beside its peer: ResNet-50 at 128x128, batch 8, two processes.

Runs Troupe and a PyTorch RPC program (tests/peers/rpc_resnet50.py) in turn, with the same BLAS
kernel and the same number of threads, and prints seconds per step and their ratio for each
micro-batch size: medians over the rounds, each round's first step left out as warm-up. Exits with 1
where Troupe is slower.

usage: ./dev bench resnet50 [--rounds 5] [--steps 3] [--threads 1] [--micro-batches 1,2,4,8]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blas_environment(threads):
    """The same settings for both sides; a kernel that is already chosen is respected."""
    environment = dict(os.environ)
    if not environment.get("OPENBLAS_CORETYPE"):
        environment.pop("OPENBLAS_CORETYPE", None)
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        if "avx512f" in flags:
            environment["OPENBLAS_CORETYPE"] = "SkylakeX"
        elif "avx2" in flags:
            environment["OPENBLAS_CORETYPE"] = "Haswell"
    environment["OMP_NUM_THREADS"] = str(threads)
    environment["OPENBLAS_NUM_THREADS"] = str(threads)
    return environment


def median_step(seconds):
    return statistics.median(seconds[1:])


def run_troupe(args, micro_batch, environment):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            [
                args.binary, "run", str(ROOT / "apps/configs/resnet50_rpc.textproto"),
                "--out", out, "--json",
                "--set", f"plugin.micro_batch_size={micro_batch}",
                "--set", f"plugin.steps={args.steps + 1}",
                "--set", f"plugin.stages[0].threads={args.threads}",
                "--set", f"plugin.stages[1].threads={args.threads}",
                "--set", "plugin.discard_weights=true",
            ],
            env=environment, check=True, stdout=subprocess.DEVNULL,
        )
        lines = (pathlib.Path(out) / "metrics.jsonl").read_text().splitlines()
    return median_step([json.loads(line)["seconds"] for line in lines])


def run_peer(args, micro_batch, environment):
    done = subprocess.run(
        [
            sys.executable, str(ROOT / "tests/peers/rpc_resnet50.py"),
            "--micro-batch", str(micro_batch), "--steps", str(args.steps + 1),
            "--threads", str(args.threads),
        ],
        env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    return median_step(json.loads(done.stdout.splitlines()[-1])["seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--micro-batches", default="1,2,4,8")
    args = parser.parse_args()
    environment = blas_environment(args.threads)
    print(
        f"ResNet-50, 128x128, batch 8, two processes x {args.threads} thread(s), BLAS kernel "
        f"{environment.get('OPENBLAS_CORETYPE', 'as OpenBLAS chooses')}, {args.rounds} rounds"
    )
    ratios = []
    print(f"{'micro-batch':>11} {'troupe s/step':>14} {'torch rpc s/step':>17} {'ratio':>7}")
    for micro_batch in (int(size) for size in args.micro_batches.split(",")):
        pairs = [
            (run_troupe(args, micro_batch, environment), run_peer(args, micro_batch, environment))
            for _ in range(args.rounds)
        ]
        ours = statistics.median(pair[0] for pair in pairs)
        theirs = statistics.median(pair[1] for pair in pairs)
        ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
        ratios.append(ratio)
        print(f"{micro_batch:>11} {ours:>14.3f} {theirs:>17.3f} {ratio:>6.2f}x", flush=True)
    print("ratio: how many times faster Troupe is; the median of the rounds' own ratios")
    if min(ratios) < 1:
        sys.exit("Troupe is slower than its peer")


if __name__ == "__main__":
    main()
