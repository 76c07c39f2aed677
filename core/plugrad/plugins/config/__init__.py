"""The configuration of a process, from code, environment and file; each value has its source.

`plugrad.config` is its public interface.
"""

from __future__ import annotations

from plugrad.plugins.config.keys import ConfigError, Setting
from plugrad.plugins.config.read import Config, load_config

__all__ = ["Config", "ConfigError", "Setting", "load_config"]
