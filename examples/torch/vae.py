"""A variational autoencoder of small pictures, with torch.distributions."""

import argparse

import torch
from torch import nn, optim
from torch.distributions import Bernoulli, Distribution, Independent, Normal, kl_divergence
from torch.utils.data import DataLoader, TensorDataset

SIDE = 8


def pictures(count):
    """Discs with random positions and sizes: (N, 64), probabilities sampled as 0 or 1."""
    centre = 2 + 3 * torch.rand(count, 2, 1, 1)
    radius = 1 + 1.5 * torch.rand(count, 1, 1)
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    distance = ((rows - centre[:, 0]) ** 2 + (columns - centre[:, 1]) ** 2).sqrt()
    return torch.bernoulli(torch.sigmoid(4 * (radius - distance))).flatten(1)


class VAE(nn.Module):
    def __init__(self, latent=3, hidden=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SIDE * SIDE, hidden), nn.ReLU())
        self.loc = nn.Linear(hidden, latent)
        self.scale = nn.Sequential(nn.Linear(hidden, latent), nn.Softplus())
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, SIDE * SIDE)
        )
        self.register_buffer("zero", torch.zeros(latent))
        self.register_buffer("one", torch.ones(latent))

    @property
    def prior(self):
        return Independent(Normal(self.zero, self.one), 1)

    def encode(self, x):
        hidden = self.encoder(x)
        return Independent(Normal(self.loc(hidden), self.scale(hidden) + 1e-4), 1)

    def decode(self, z):
        return Independent(Bernoulli(logits=self.decoder(z)), 1)

    def forward(self, x):
        """Both terms of the bound, averaged over the batch."""
        posterior = self.encode(x)
        likelihood = self.decode(posterior.rsample()).log_prob(x)
        return -likelihood.mean(), kl_divergence(posterior, self.prior).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--compile", action="store_true", help="each step is one program")
    arguments = parser.parse_args()

    torch.manual_seed(7)
    data = TensorDataset(pictures(arguments.pictures))
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    model = VAE()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    def step(x):
        reconstruction, divergence = model(x)
        (reconstruction + divergence).backward()
        optimizer.step()
        optimizer.zero_grad()
        return torch.stack([reconstruction, divergence]).detach()

    if arguments.compile:
        # A compiled step cannot read values.
        Distribution.set_default_validate_args(False)
        step = torch.compile(step)
    for epoch in range(1, arguments.epochs + 1):
        model.train()
        sums = torch.zeros(2)
        for (x,) in loader:
            sums += step(x)
        reconstruction, divergence = (sums / len(loader)).tolist()
        print(f"epoch {epoch}: reconstruction {reconstruction:.3f}, divergence {divergence:.4f}")

    model.eval()
    with torch.no_grad():
        drawn = model.decode(model.prior.sample((4,)))
        print("drawn pictures have", [round(mean, 3) for mean in drawn.mean.mean(1).tolist()])
        for row in drawn.mean[0].view(SIDE, SIDE) > 0.5:
            print("".join("#" if filled else "." for filled in row.tolist()))


if __name__ == "__main__":
    main()
