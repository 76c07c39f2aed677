"""plugrad.hub: files and models from the network or the disk, kept in one folder."""

from plugrad_nn.hub.downloads import (
    _HASH_IN_NAME as _HASH_IN_NAME,  # PyTorch's HASH_REGEX, which packages read
)
from plugrad_nn.hub.downloads import (
    download_url_to_file,
    get_dir,
    load_state_dict_from_url,
    set_dir,
)
from plugrad_nn.hub.entry_points import help, list, load

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]
