"""pytorch-ignite: a trainer with handlers, an evaluator with metrics, a checkpoint that is read."""

import tempfile

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    Checkpoint,
    DiskSaver,
    EarlyStopping,
    EMAHandler,
    PiecewiseLinear,
    TerminateOnNan,
)
from ignite.metrics import Accuracy, ConfusionMatrix, Fbeta, Loss, Precision, RunningAverage
from ignite.metrics.ssim import SSIM
from torch import nn
from training import small_net


def run():
    x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
    data = torch.utils.data.TensorDataset(x, y)
    training = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    checking = torch.utils.data.DataLoader(data, batch_size=16)
    model, criterion = small_net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    trainer = create_supervised_trainer(model, optimizer, criterion)
    metrics = {
        "accuracy": Accuracy(),
        "loss": Loss(criterion),
        "precision": Precision(average=True),
        "f": Fbeta(1.0),
        "confusion": ConfusionMatrix(3),
    }
    evaluator = create_supervised_evaluator(model, metrics=metrics)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "mean")
    averaged = EMAHandler(model, momentum=0.1)
    averaged.attach(trainer, name="ema", event=Events.ITERATION_COMPLETED)
    rates = PiecewiseLinear(optimizer, "lr", [(0, 0.05), (12, 0.01)])
    trainer.add_event_handler(Events.ITERATION_STARTED, rates)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
    found = []

    @trainer.on(Events.EPOCH_COMPLETED)
    def check(engine):
        evaluator.run(checking)
        found.append([evaluator.state.metrics[name] for name in metrics])
        found.append(engine.state.metrics["mean"])

    stop = EarlyStopping(2, lambda engine: -engine.state.metrics["loss"], trainer)
    evaluator.add_event_handler(Events.COMPLETED, stop)
    with tempfile.TemporaryDirectory() as folder:
        parts = {"model": model, "optimizer": optimizer, "trainer": trainer}
        saver = Checkpoint(parts, DiskSaver(folder, require_empty=False), n_saved=1)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
        trainer.run(training, max_epochs=3)
        again = small_net()
        state = torch.load(saver.last_checkpoint, weights_only=True)
        again.load_state_dict(state["model"])
    likeness = SSIM(data_range=1.0)
    image = torch.rand(2, 3, 16, 16)
    likeness.update((image, (image + 0.1 * torch.rand(2, 3, 16, 16)).clamp(0, 1)))
    found += [list(again.parameters()), list(averaged.ema_model.parameters())]
    return [found, likeness.compute()]
