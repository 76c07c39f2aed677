"""plugrad.utils.data: data sets, samplers and the loader that makes batches of them."""

from plugrad.plugins.arguments import explain_constructors
from plugrad_nn.utils.data._utils.collate import default_collate, default_convert
from plugrad_nn.utils.data._utils.worker_info import get_worker_info
from plugrad_nn.utils.data.dataloader import DataLoader, _DatasetKind
from plugrad_nn.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from plugrad_nn.utils.data.distributed import DistributedSampler
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
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

explain_constructors(globals()[name] for name in __all__)
