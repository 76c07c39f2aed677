"""pytorch-metric-learning: losses, miners and distances on embeddings."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers

NAMES = [
    "AngularLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "FastAPLoss",
    "GeneralizedLiftedStructureLoss",
    "IntraPairVarianceLoss",
    "LiftedStructureLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
    "NCALoss",
    "NPairsLoss",
    "NTXentLoss",
    "SupConLoss",
    "TripletMarginLoss",
    "TupletMarginLoss",
]


def run():
    labels = torch.arange(12) % 4
    found = []
    for make in [getattr(losses, name) for name in NAMES]:
        x = torch.randn(12, 6, requires_grad=True)
        value = make()(x, labels)
        value.backward()
        found += [value, x.grad]
    for make in (
        losses.ArcFaceLoss,
        losses.CosFaceLoss,
        losses.ProxyAnchorLoss,
        losses.SoftTripleLoss,
        losses.NormalizedSoftmaxLoss,
    ):
        loss, x = make(num_classes=4, embedding_size=6), torch.randn(12, 6, requires_grad=True)
        value = loss(x, labels)
        value.backward()
        found += [value, x.grad, [p.grad for p in loss.parameters()]]
    x = torch.randn(12, 6, requires_grad=True)
    pairs = miners.MultiSimilarityMiner()(x, labels)
    loss = losses.TripletMarginLoss(
        distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0)
    )
    value = loss(x, labels, miners.BatchHardMiner()(x, labels))
    value.backward()
    return [*found, list(pairs), value, x.grad]
