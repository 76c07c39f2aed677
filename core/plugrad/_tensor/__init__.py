"""The classes of tensors that users meet, which are interpreted."""
