"""plugrad.save, plugrad.load, and their settings in `plugrad.serialization`."""

from plugrad_nn.serialization.loading import get_unsafe_globals_in_checkpoint, load
from plugrad_nn.serialization.locations import MapLocation as MAP_LOCATION  # PyTorch's name
from plugrad_nn.serialization.locations import (
    default_restore_location,
    location_tag,
    register_package,
)
from plugrad_nn.serialization.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from plugrad_nn.serialization.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from plugrad_nn.serialization.safetensors_files import read_metadata
from plugrad_nn.serialization.saving import save
from plugrad_nn.serialization.torch_serialization import (
    DEFAULT_PROTOCOL,
    STORAGE_KEY_SEPARATOR,
    SourceChangeWarning,
    StorageType,
    check_module_version_greater_or_equal,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
    validate_cuda_device,
    validate_hpu_device,
)

__all__ = [
    "DEFAULT_PROTOCOL",
    "LoadEndianness",
    "MAP_LOCATION",
    "STORAGE_KEY_SEPARATOR",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "read_metadata",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]
