"""From a call on tensors to a kernel on arrays: arguments, overloads, promotion, results."""
