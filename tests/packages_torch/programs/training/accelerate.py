"""accelerate: a training loop that it prepares, with gradients summed over batches and clipped."""

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from training import small_net


def run():
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = small_net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randn(16, 3))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    found = []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = (model(x) - y).square().mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    found.append(accelerator.clip_grad_norm_(model.parameters(), 0.5))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            found.append(accelerator.gather(loss.detach()))
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        accelerator.load_state(folder)
    return [found, before, list(accelerator.unwrap_model(model).parameters())]
