"""plugrad.utils.data: data sets, samplers and the loader that makes batches of them."""

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.utils.data.collate import default_collate
from plugrad_nn.utils.data.dataloader import DataLoader
from plugrad_nn.utils.data.dataset import Dataset, Subset, TensorDataset, random_split
from plugrad_nn.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "random_split",
]

explain_constructors(globals()[name] for name in __all__)
