"""skorch: a classifier and a regressor with scikit-learn's methods."""

import numpy as np
import torch
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler
from training import small_net


def run():
    x = np.random.randn(64, 4).astype("float32")
    labels = (x[:, 0] > 0).astype("int64") + (x[:, 1] > 0)
    net = NeuralNetClassifier(
        small_net(),
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=3,
        lr=0.1,
        batch_size=16,
        verbose=0,
        optimizer=torch.optim.Adam,
        callbacks=[EpochScoring("accuracy"), LRScheduler("StepLR", step_size=1, gamma=0.5)],
    )
    net.fit(x, labels)
    other = NeuralNetRegressor(
        torch.nn.Linear(4, 1), max_epochs=3, lr=0.05, verbose=0, train_split=None
    )
    other.fit(x, x[:, :1] * 2)
    history = [[row["train_loss"], row["valid_loss"], row["valid_acc"]] for row in net.history]
    return [
        history,
        list(net.module_.parameters()),
        torch.as_tensor(net.predict_proba(x)),
        torch.as_tensor(other.predict(x)),
    ]
