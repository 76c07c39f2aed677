"""Data parallel training: each rank has the whole model and a part of the batch.

`buckets` says which gradients travel together, `reducer` averages them while backward runs,
`distributed` is the module that wraps a model, `module_states` makes all ranks begin alike,
`sync_batch_norm` normalises over the batches of all ranks.
"""
