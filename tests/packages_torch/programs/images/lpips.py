"""lpips: the distance of images by a network's features, and one that is drawn nearer by it."""

import lpips
import torch
from training import train


def run():
    image = torch.rand(2, 3, 64, 64) * 2 - 1
    found = []
    for net in ("squeeze", "alex"):
        distance = lpips.LPIPS(pretrained=False, pnet_rand=True, net=net, verbose=False)
        guess = torch.nn.Parameter(torch.rand(2, 3, 64, 64) * 2 - 1)
        optimizer = torch.optim.Adam([guess], lr=0.01)
        holder = torch.nn.Module()
        holder.guess = guess
        found += train(holder, lambda g=guess, d=distance: d(g, image).mean(), optimizer)
        found.append(distance(image, guess, retPerLayer=True)[1])
    ranking = lpips.BCERankingLoss()
    judged = ranking(torch.rand(2, 1, 1, 1), torch.rand(2, 1, 1, 1), torch.rand(2, 1, 1, 1))
    return [found, judged]
