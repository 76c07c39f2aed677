"""A language model of characters: Embedding, LSTM with dropout, truncated backpropagation."""

import argparse
import math

import torch
import torch.nn as nn

LINES = [
    "the small boat goes out on the lake in the morning",
    "the wind is low and the water is clear",
    "a man on the shore reads the news of the day",
    "in the evening the small boat comes back to the shore",
    "the man has read the news and the lake is dark",
    "there is no wind and no water on the stones",
]


class Corpus:
    """The text as character indices, cut into columns that are read in parallel."""

    def __init__(self, repeats):
        text = ". ".join(LINES * repeats)
        self.characters = sorted(set(text))
        index = {character: number for number, character in enumerate(self.characters)}
        self.ids = torch.tensor([index[character] for character in text])

    def columns(self, width):
        length = self.ids.size(0) // width
        return self.ids.narrow(0, 0, length * width).view(width, -1).t().contiguous()


class Model(nn.Module):
    def __init__(self, characters, width, hidden, layers, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(characters, width)
        self.rnn = nn.LSTM(width, hidden, layers, dropout=dropout)
        self.decoder = nn.Linear(hidden, characters)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def init_hidden(self, batch):
        shape = (self.rnn.num_layers, batch, self.rnn.hidden_size)
        return torch.zeros(shape), torch.zeros(shape)

    def forward(self, ids, state):
        output, state = self.rnn(self.drop(self.encoder(ids)), state)
        return self.decoder(self.drop(output)), state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--bptt", type=int, default=20)
    parser.add_argument("--compile", action="store_true", help="each step is one program")
    arguments = parser.parse_args()

    torch.manual_seed(1111)
    corpus = Corpus(arguments.repeats)
    data = corpus.columns(8)
    count = len(corpus.characters)
    model = Model(count, width=24, hidden=48, layers=2, dropout=0.1)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    print(sum(p.numel() for p in model.parameters()), "parameters,", count, "characters")

    def step(inputs, targets, state):
        output, state = model(inputs, state)
        loss = criterion(output.view(-1, count), targets)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), norm, tuple(part.detach() for part in state)

    if arguments.compile:
        step = torch.compile(step)

    for epoch in range(1, arguments.epochs + 1):
        model.train()
        state, total, steps = model.init_hidden(data.size(1)), 0.0, 0
        for start in range(0, data.size(0) - 1, arguments.bptt):
            length = min(arguments.bptt, data.size(0) - 1 - start)
            inputs = data[start : start + length]
            targets = data[start + 1 : start + 1 + length].reshape(-1)
            loss, norm, state = step(inputs, targets, state)
            total += loss.item()
            steps += 1
        mean = total / steps
        print(f"epoch {epoch}: loss {mean:.4f}, perplexity {math.exp(mean):.3f}, norm {norm:.3f}")

    model.eval()
    with torch.no_grad():
        ids, state, text = torch.zeros(1, 1, dtype=torch.long), model.init_hidden(1), ""
        for _ in range(40):
            output, state = model(ids, state)
            weights = output.squeeze().div(0.5).exp()
            ids = torch.multinomial(weights, 1).view(1, 1)
            text += corpus.characters[ids.item()]
    print(repr(text))


if __name__ == "__main__":
    main()
