"""A generative adversarial network: transposed convolutions against convolutions."""

import argparse

import torch
import torch.nn as nn
import torch.optim as optim

SIDE = 8
NOISE = 10
FEATURES = 8


def real_pictures(count):
    """Two bright bars that cross at a random place: (N, 1, 8, 8) between -1 and 1."""
    places = torch.randint(1, SIDE - 1, (count, 2))
    images = torch.full((count, 1, SIDE, SIDE), -0.9)
    index = torch.arange(count)
    images[index, 0, places[:, 0]] = 0.9
    images[index, 0, :, places[:, 1]] = 0.9
    return images + 0.05 * torch.randn(images.shape)


def weights_init(module):
    name = module.__class__.__name__
    if name.find("Conv") != -1:
        nn.init.normal_(module.weight.data, 0.0, 0.1)
    elif name.find("BatchNorm") != -1:
        nn.init.normal_(module.weight.data, 1.0, 0.02)
        nn.init.constant_(module.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NOISE, FEATURES * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(FEATURES * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(FEATURES * 2, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, FEATURES, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(FEATURES, FEATURES * 2, 3, 1, 1, bias=False),
            nn.BatchNorm2d(FEATURES * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(FEATURES * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, images):
        return self.main(images).view(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10)
    arguments = parser.parse_args()

    torch.manual_seed(999)
    generator, discriminator = Generator().apply(weights_init), Discriminator().apply(weights_init)
    criterion = nn.BCELoss()
    fixed_noise = torch.randn(16, NOISE, 1, 1)
    optimizer_d = optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_g = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))

    for step in range(1, arguments.steps + 1):
        real = real_pictures(32)
        discriminator.zero_grad()
        label = torch.full((real.size(0),), 1.0, dtype=torch.float)
        output = discriminator(real)
        loss_real = criterion(output, label)
        loss_real.backward()
        mean_real = output.mean().item()

        fake = generator(torch.randn(real.size(0), NOISE, 1, 1))
        label.fill_(0.0)
        output = discriminator(fake.detach())
        loss_fake = criterion(output, label)
        loss_fake.backward()
        optimizer_d.step()

        generator.zero_grad()
        label.fill_(1.0)
        loss_g = criterion(discriminator(fake), label)
        loss_g.backward()
        optimizer_g.step()
        if step % arguments.every == 0:
            loss_d = (loss_real + loss_fake).item()
            print(
                f"step {step:3d}: D {loss_d:.3f}, G {loss_g.item():.3f}, "
                f"D(real) {mean_real:.3f}, D(fake) {output.mean().item():.3f}"
            )

    with torch.no_grad():
        images = generator(fixed_noise)
    print(f"pictures {tuple(images.shape)}: mean {images.mean():.3f}, std {images.std():.3f}")


if __name__ == "__main__":
    main()
