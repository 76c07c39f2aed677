"""A Transformer that learns to reverse sequences: masks, padding, warmup, greedy decoding."""

import argparse
import math

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

PAD, START, END = 0, 1, 2
SYMBOLS = 12


class PositionalEncoding(nn.Module):
    def __init__(self, width: int, dropout: float, longest: int = 50):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        rates = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
        position = torch.arange(0, longest).reshape(longest, 1)
        encoding = torch.zeros((longest, width))
        encoding[:, 0::2] = torch.sin(position * rates)
        encoding[:, 1::2] = torch.cos(position * rates)
        self.register_buffer("encoding", encoding.unsqueeze(-2))

    def forward(self, embedded: Tensor) -> Tensor:
        return self.dropout(embedded + self.encoding[: embedded.size(0)])


class Translator(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4, dropout: float = 0.1):
        super().__init__()
        self.width = width
        self.transformer = nn.Transformer(
            d_model=width,
            nhead=heads,
            num_encoder_layers=2,
            num_decoder_layers=2,
            dim_feedforward=64,
            dropout=dropout,
        )
        self.source = nn.Embedding(SYMBOLS, width, padding_idx=PAD)
        self.target = nn.Embedding(SYMBOLS, width, padding_idx=PAD)
        self.position = PositionalEncoding(width, dropout)
        self.generator = nn.Linear(width, SYMBOLS)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        return self.position(table(ids) * math.sqrt(self.width))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(target.size(0))
        # One as numbers to add, like the causal mask, and one as booleans.
        target_padding = torch.zeros(target.shape[::-1]).masked_fill((target == PAD).t(), -math.inf)
        source_padding = (source == PAD).transpose(0, 1)
        hidden = self.transformer(
            self.embed(self.source, source),
            self.embed(self.target, target),
            tgt_mask=causal,
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
        )
        return self.generator(hidden)


def batch(size: int):
    """Sequences of several lengths, and the same reversed between START and END: (T, B)."""
    source, target = [], []
    for length in torch.randint(3, 9, (size,)).tolist():
        symbols = torch.randint(3, SYMBOLS, (length,))
        source.append(symbols)
        target.append(torch.cat([torch.tensor([START]), symbols.flip(0), torch.tensor([END])]))
    return pad_sequence(source, padding_value=PAD), pad_sequence(target, padding_value=PAD)


@torch.no_grad()
def greedy(model: Translator, symbols) -> list:
    model.eval()
    source = torch.tensor(symbols).unsqueeze(1)
    memory = model.transformer.encoder(model.embed(model.source, source))
    ids = torch.tensor([[START]])
    for _ in range(len(symbols) + 1):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(0))
        hidden = model.transformer.decoder(model.embed(model.target, ids), memory, mask)
        best = model.generator(hidden[-1]).argmax(-1)
        ids = torch.cat([ids, best[None]])
        if best.item() == END:
            break
    return ids[1:, 0].tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=50)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model = Translator()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.05)
    # Keys' biases have no influence, so their gradients are rounding errors. With a smaller eps
    # these would become full steps, which differ between libraries.
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 40, (40 / (step + 1)) ** 0.5)
    )
    for step in range(1, arguments.steps + 1):
        model.train()
        source, target = batch(32)
        logits = model(source, target[:-1])
        loss = criterion(logits.reshape(-1, SYMBOLS), target[1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % arguments.every == 0:
            rate = optimizer.param_groups[0]["lr"]
            print(f"step {step:3d}: loss {loss.item():.3f}, norm {norm.item():.2f}, lr {rate:.6f}")
    print(greedy(model, [3, 4, 5, 6, 7]))


if __name__ == "__main__":
    main()
