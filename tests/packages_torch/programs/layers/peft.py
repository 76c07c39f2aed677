"""peft: LoRA, DoRA, IA3, LoHa, OFT and BOFT beside the weights of a network, which they merge into."""

import tempfile

import peft
import torch
from torch import nn
from training import train


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(torch.relu(self.second(torch.relu(self.first(x)))))


def run():
    x, y = torch.randn(12, 8), torch.randint(0, 3, (12,))
    places = ["first", "second"]
    configs = {
        "lora": peft.LoraConfig(
            r=4, target_modules=places, modules_to_save=["head"], init_lora_weights=False
        ),
        "rslora": peft.LoraConfig(r=2, target_modules=places, use_rslora=True, lora_dropout=0.1),
        "dora": peft.LoraConfig(r=4, target_modules=places, use_dora=True),
        "pissa": peft.LoraConfig(r=4, target_modules=places, init_lora_weights="pissa"),
        "ia3": peft.IA3Config(target_modules=places, feedforward_modules=["second"]),
        "loha": peft.LoHaConfig(r=4, target_modules=places),
        "lokr": peft.LoKrConfig(r=4, target_modules=places, init_weights=False),
        "oft": peft.OFTConfig(
            r=0, oft_block_size=4, target_modules=places, use_cayley_neumann=False
        ),
        "vera": peft.VeraConfig(r=4, target_modules=["second"]),
        "fourier": peft.FourierFTConfig(n_frequency=20, target_modules=["second"]),
    }
    found = []
    for config in configs.values():
        model = peft.get_peft_model(Net(), config)
        optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=0.01)
        found += train(model, lambda m=model: nn.functional.cross_entropy(m(x), y), optimizer)
        model.eval()
        before = model(x)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            saved = peft.load_peft_weights(folder)
            found += [saved[name] for name in sorted(saved)]
        merged = model.merge_and_unload()
        found += [before, merged(x)]
    return found
