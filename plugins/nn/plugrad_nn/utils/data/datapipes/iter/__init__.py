"""plugrad.utils.data.datapipes.iter: pipes that yield samples in sequence."""

from plugrad_nn.utils.data.datapipes.iter.callable import (
    CollatorIterDataPipe as Collator,
)
from plugrad_nn.utils.data.datapipes.iter.callable import (
    MapperIterDataPipe as Mapper,
)
from plugrad_nn.utils.data.datapipes.iter.combinatorics import (
    SamplerIterDataPipe as Sampler,
)
from plugrad_nn.utils.data.datapipes.iter.combinatorics import (
    ShufflerIterDataPipe as Shuffler,
)
from plugrad_nn.utils.data.datapipes.iter.combining import (
    ConcaterIterDataPipe as Concater,
)
from plugrad_nn.utils.data.datapipes.iter.combining import (
    MultiplexerIterDataPipe as Multiplexer,
)
from plugrad_nn.utils.data.datapipes.iter.combining import (
    ZipperIterDataPipe as Zipper,
)
from plugrad_nn.utils.data.datapipes.iter.grouping import (
    BatcherIterDataPipe as Batcher,
)
from plugrad_nn.utils.data.datapipes.iter.grouping import (
    GrouperIterDataPipe as Grouper,
)
from plugrad_nn.utils.data.datapipes.iter.grouping import (
    UnBatcherIterDataPipe as UnBatcher,
)
from plugrad_nn.utils.data.datapipes.iter.selecting import FilterIterDataPipe as Filter
from plugrad_nn.utils.data.datapipes.iter.sharding import (
    ShardingFilterIterDataPipe as ShardingFilter,
)
from plugrad_nn.utils.data.datapipes.iter.splitting import (
    DemultiplexerIterDataPipe as Demultiplexer,
)
from plugrad_nn.utils.data.datapipes.iter.splitting import (
    ForkerIterDataPipe as Forker,
)
from plugrad_nn.utils.data.datapipes.iter.wrapping import (
    IterableWrapperIterDataPipe as IterableWrapper,
)

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "UnBatcher",
    "Zipper",
]
