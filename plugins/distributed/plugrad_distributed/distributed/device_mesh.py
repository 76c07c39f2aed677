"""`plugrad.distributed.device_mesh`: ranks in a grid, under the names of PyTorch's module."""

from __future__ import annotations

from plugrad_distributed.mesh.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
