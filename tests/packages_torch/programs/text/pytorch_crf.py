"""pytorch-crf: a conditional random field over labels of a sequence."""

import torch
from torchcrf import CRF
from training import train


def run():
    crf, scores = CRF(5, batch_first=True), torch.randn(3, 7, 5)
    tags, mask = torch.randint(0, 5, (3, 7)), torch.arange(7)[None] < torch.tensor([[7], [5], [3]])
    return [train(crf, lambda: -crf(scores, tags, mask=mask)), crf.decode(scores, mask=mask)]
