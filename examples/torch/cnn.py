"""A convolutional network that classifies shapes in noisy pictures: DataLoader, schedule,
checkpoint.

It trains, writes a checkpoint half way, and continues from that file with a new model.
"""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, random_split

SIZE = 12


class Shapes(Dataset):
    """Pictures (1, 12, 12) of a bar, a column, a square or a diagonal, and their classes."""

    def __init__(self, count):
        self.labels = torch.randint(0, 4, (count,))
        self.places = torch.randint(1, SIZE - 6, (count, 2))
        self.noise = 0.3 * torch.randn(count, 1, SIZE, SIZE)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.noise[index].clone()
        row, column = self.places[index].tolist()
        label = self.labels[index]
        if label == 0:
            image[0, row, column : column + 6] += 1.0
        elif label == 1:
            image[0, row : row + 6, column] += 1.0
        elif label == 2:
            image[0, row : row + 3, column : column + 3] += 1.0
        else:
            for step in range(6):
                image[0, row + step, column + step] += 1.0
        return image, label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 3 * 3, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, loader, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def test(model, loader):
    model.eval()
    loss, correct = 0.0, 0
    for images, labels in loader:
        output = model(images)
        loss += F.nll_loss(output, labels, reduction="sum").item()
        correct += (output.argmax(dim=1) == labels).sum().item()
    return loss / len(loader.dataset), correct


def prepare(learning_rate):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    return model, optimizer, StepLR(optimizer, step_size=2, gamma=0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--pictures", type=int, default=600)
    arguments = parser.parse_args()

    torch.manual_seed(1)
    data = Shapes(arguments.pictures)
    held_out = arguments.pictures // 5
    train_set, test_set = random_split(data, [len(data) - held_out, held_out])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=100)

    model, optimizer, scheduler = prepare(0.05)
    print(model)
    middle = arguments.epochs // 2
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        for epoch in range(1, arguments.epochs + 1):
            loss = train(model, train_loader, optimizer)
            rate = scheduler.get_last_lr()[0]
            scheduler.step()
            test_loss, correct = test(model, test_loader)
            print(
                f"epoch {epoch}: lr {rate:.4f}, loss {loss:.4f}, "
                f"held out: {test_loss:.4f}, {correct}/{held_out}"
            )
            if epoch == middle:
                torch.save(
                    {
                        "epoch": epoch,
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "scheduler": scheduler.state_dict(),
                    },
                    path,
                )
                model, optimizer, scheduler = prepare(1.0)
                checkpoint = torch.load(path)
                model.load_state_dict(checkpoint["model"])
                optimizer.load_state_dict(checkpoint["optimizer"])
                scheduler.load_state_dict(checkpoint["scheduler"])
                print(f"resumed after epoch {checkpoint['epoch']}")


if __name__ == "__main__":
    main()
