"""plugrad.utils.data.datapipes.map: pipes with samples by key."""

from plugrad_nn.utils.data.datapipes.map.callable import MapperMapDataPipe as Mapper
from plugrad_nn.utils.data.datapipes.map.combinatorics import (
    ShufflerIterDataPipe as Shuffler,
)
from plugrad_nn.utils.data.datapipes.map.combining import (
    ConcaterMapDataPipe as Concater,
)
from plugrad_nn.utils.data.datapipes.map.combining import ZipperMapDataPipe as Zipper
from plugrad_nn.utils.data.datapipes.map.grouping import BatcherMapDataPipe as Batcher
from plugrad_nn.utils.data.datapipes.map.wrapping import (
    SequenceWrapperMapDataPipe as SequenceWrapper,
)

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
