"""geoopt: points on manifolds, and Riemannian Adam."""

import geoopt
import torch
from training import train


class Points(torch.nn.Module):
    def __init__(self, ball):
        super().__init__()
        self.points = geoopt.ManifoldParameter(ball.expmap0(torch.randn(5, 3) * 0.3), manifold=ball)
        self.target = ball.expmap0(torch.randn(5, 3) * 0.3)
        self.ball = ball


def run():
    model = Points(geoopt.PoincareBall())
    optimizer = geoopt.optim.RiemannianAdam(model.parameters(), lr=0.05)
    found = train(
        model, lambda: model.ball.dist(model.points, model.target).square().sum(), optimizer, 5
    )
    sphere = geoopt.Sphere()
    x = sphere.projx(torch.randn(4, 3))
    return [found, sphere.expmap(x, sphere.proju(x, torch.randn(4, 3)))]
