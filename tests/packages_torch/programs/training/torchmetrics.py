"""torchmetrics: metrics of classes, numbers, images and texts; one of them with a gradient."""

import torch
import torchmetrics as tm


def run():
    chances, labels = torch.rand(60, 5).softmax(1), torch.randint(5, (60,))
    found = []
    for kind in (tm.Accuracy, tm.F1Score, tm.AUROC, tm.AveragePrecision, tm.CohenKappa):
        metric = kind(task="multiclass", num_classes=5)
        for first in range(0, 60, 20):
            metric.update(chances[first : first + 20], labels[first : first + 20])
        found.append(metric.compute())
    found.append(tm.ConfusionMatrix(task="multiclass", num_classes=5)(chances, labels))
    found += tm.ROC(task="binary")(torch.rand(30), torch.randint(2, (30,)))
    given, expected = torch.rand(40), torch.rand(40)
    kinds = (tm.MeanSquaredError, tm.R2Score, tm.PearsonCorrCoef, tm.SpearmanCorrCoef)
    found += [kind()(given, expected) for kind in kinds]
    collection = tm.MetricCollection({"error": tm.MeanAbsoluteError(), "mean": tm.R2Score()})
    found += collection(given, expected).values()
    images = torch.rand(2, 3, 32, 32, dtype=torch.float64, requires_grad=True)
    likeness = tm.functional.image.structural_similarity_index_measure(
        images, torch.rand(2, 3, 32, 32).double(), data_range=1.0
    )
    likeness.backward()
    found += [likeness, images.grad, tm.functional.image.total_variation(images.detach())]
    found.append(tm.functional.text.word_error_rate(["a b c"], ["a d c"]))
    return found
