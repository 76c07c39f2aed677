"""Data parallel training: each rank has the whole model and a part of the batch.

`buckets` groups gradients that are sent together, `reducer` averages them while backward runs,
`distributed` is the module that wraps a model, `arguments` checks its arguments, `mixed_precision`
calls the model in another dtype, `module_states` gives all ranks the same initial state,
`overlapping` updates parameters during backward, `sync_batch_norm` normalises over the batches of
all ranks. `delayed` averages the gradients of some parameters together.
"""
