"""`plugrad.config`: the configuration of this process, from code; see docs/configuration.md."""

from __future__ import annotations

# Interpreted: it only re-exports.
from plugrad.plugins.config import Config, ConfigError, Setting
from plugrad.plugins.config.current import current_config, get, reset, set, setting

__all__ = ["Config", "ConfigError", "Setting", "current_config", "get", "reset", "set", "setting"]
