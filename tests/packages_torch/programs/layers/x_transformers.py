"""x-transformers: a language model with rotary positions, RMS norms and gated feed-forwards."""

import torch
from training import train
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def run():
    layers = Decoder(
        dim=16,
        depth=2,
        heads=2,
        attn_dim_head=8,
        rotary_pos_emb=True,
        use_rmsnorm=True,
        ff_glu=True,
        attn_qk_norm=True,
    )
    model = AutoregressiveWrapper(
        TransformerWrapper(num_tokens=32, max_seq_len=24, attn_layers=layers)
    )
    ids = torch.randint(0, 32, (2, 20))
    return train(model, lambda: model(ids), torch.optim.AdamW(model.parameters(), lr=1e-2))
