"""lightning: a module that its trainer fits, checks and tests, with a checkpoint that is loaded."""

import logging
import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from training import small_net


class Regression(lightning.LightningModule):
    def __init__(self, rate=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.net = small_net()
        self.losses = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, number):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("loss", loss)
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch, number):
        x, y = batch
        self.log("checked", nn.functional.l1_loss(self(x), y))

    test_step = validation_step

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def run():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(5, verbose=False)
    data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randn(24, 3))
    training = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    checking = torch.utils.data.DataLoader(data, batch_size=12)
    model = Regression()
    with tempfile.TemporaryDirectory() as folder:
        best = ModelCheckpoint(dirpath=folder, monitor="checked")
        trainer = lightning.Trainer(
            max_epochs=3,
            accelerator="cpu",
            logger=False,
            callbacks=[best, EarlyStopping("checked", patience=2)],
            gradient_clip_val=0.5,
            accumulate_grad_batches=2,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, training, checking)
        tested = trainer.test(model, checking, verbose=False)
        again = Regression.load_from_checkpoint(best.best_model_path, weights_only=False)
    found = [model.losses, trainer.callback_metrics["checked"], tested[0]["checked"]]
    return [found, list(model.parameters()), list(again.parameters())]
