"""entmax: sparse mappings to the simplex, and their losses."""

import torch
from entmax import Entmax15Loss, SparsemaxLoss, budget_bisect, entmax15, entmax_bisect, sparsemax


def run():
    found = []
    alpha = torch.tensor(1.3, requires_grad=True)
    for function in (
        sparsemax,
        entmax15,
        lambda x: entmax_bisect(x, alpha),
        lambda x: budget_bisect(x, budget=2),
    ):
        x = torch.randn(4, 7, requires_grad=True)
        y = function(x)
        y.pow(2).sum().backward()
        found += [y, x.grad]
    found.append(alpha.grad)
    for loss in (SparsemaxLoss(k=5), Entmax15Loss(reduction="sum")):
        x = torch.randn(4, 7, requires_grad=True)
        value = loss(x, torch.tensor([0, 3, 6, 2])).sum()
        value.backward()
        found += [value, x.grad]
    return found
