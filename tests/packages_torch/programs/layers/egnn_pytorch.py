"""egnn-pytorch: a graph network that turns with its points."""

import torch
from egnn_pytorch import EGNN
from training import train


def run():
    model, features, points = (
        EGNN(dim=8, m_dim=6, edge_dim=2, num_nearest_neighbors=3),
        torch.randn(1, 6, 8),
        torch.randn(1, 6, 3),
    )
    edges = torch.randn(1, 6, 6, 2)

    def loss():
        h, x = model(features, points, edges)
        return h.square().mean() + (x - points).square().mean()

    return train(model, loss)
