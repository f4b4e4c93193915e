"""Prints what torch.optim.lr_scheduler makes of a learning rate: one line a case, its name and the
rate at each step."""
import torch
from torch.optim.lr_scheduler import (CosineAnnealingLR, LinearLR, MultiStepLR, OneCycleLR,
                                      SequentialLR, StepLR)

STEPS = 40


def rates(make, every=1, lr=0.4):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = make(optimizer)
    found = []
    for step in range(STEPS):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (step + 1) % every == 0:
            scheduler.step()
    return found


def warm(make, length, **options):
    return lambda o: SequentialLR(o, [LinearLR(o, total_iters=length, **options), make(o)],
                                  milestones=[length])


CASES = {
    "step": (lambda o: StepLR(o, 7, gamma=0.3), 1),
    "multi_step": (lambda o: MultiStepLR(o, [3, 10, 11, 30]), 1),
    "cosine": (lambda o: CosineAnnealingLR(o, STEPS, eta_min=0.01), 1),
    "one_cycle": (lambda o: OneCycleLR(o, 0.4, total_steps=STEPS, cycle_momentum=False), 1),
    "one_cycle_linear": (lambda o: OneCycleLR(o, 0.4, total_steps=STEPS, pct_start=0.25,
                                              anneal_strategy="linear", div_factor=10,
                                              final_div_factor=100, cycle_momentum=False), 1),
    "warm_step": (warm(lambda o: StepLR(o, 5), 6), 1),
    "warm_cosine": (warm(lambda o: CosineAnnealingLR(o, STEPS - 8), 8, start_factor=0.1), 1),
    "epochs": (lambda o: StepLR(o, 2, gamma=0.5), 5),
    "cosine_epochs": (lambda o: CosineAnnealingLR(o, STEPS // 5), 5),
}

if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore")
    for name, (make, every) in CASES.items():
        print(name, *(repr(float(rate)) for rate in rates(make, every)))
