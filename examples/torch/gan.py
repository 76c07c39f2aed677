"""A generative adversarial network: transposed convolutions against convolutions."""

import argparse

import torch
import torch.nn as nn
import torch.optim as optim

SIDE = 8
NOISE = 10
FEATURES = 8


def real_pictures(count):
    """Two bright bars that cross at a random position: (N, 1, 8, 8) between -1 and 1."""
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
    parser.add_argument("--compile", action="store_true", help="each step is one program")
    arguments = parser.parse_args()

    torch.manual_seed(999)
    generator, discriminator = Generator().apply(weights_init), Discriminator().apply(weights_init)
    criterion = nn.BCELoss()
    fixed_noise = torch.randn(16, NOISE, 1, 1)
    optimizer_d = optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizer_g = optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))

    def train(real):
        """A step of the discriminator, then one of the generator."""
        count = real.size(0)
        ones, zeros = torch.ones(count), torch.zeros(count)
        output_real = discriminator(real)
        fake = generator(torch.randn(count, NOISE, 1, 1))
        output_fake = discriminator(fake.detach())
        loss_d = criterion(output_real, ones) + criterion(output_fake, zeros)
        loss_d.backward()
        optimizer_d.step()

        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        optimizer_g.step()
        discriminator.zero_grad()
        generator.zero_grad()
        return torch.stack([loss_d, loss_g, output_real.mean(), output_fake.mean()]).detach()

    if arguments.compile:
        train = torch.compile(train)
    for step in range(1, arguments.steps + 1):
        found = train(real_pictures(32))
        if step % arguments.every == 0:
            loss_d, loss_g, real, fake = found.tolist()
            print(
                f"step {step:3d}: D {loss_d:.3f}, G {loss_g:.3f}, "
                f"D(real) {real:.3f}, D(fake) {fake:.3f}"
            )

    with torch.no_grad():
        images = generator(fixed_noise)
    print(f"pictures {tuple(images.shape)}: mean {images.mean():.3f}, std {images.std():.3f}")


if __name__ == "__main__":
    main()
