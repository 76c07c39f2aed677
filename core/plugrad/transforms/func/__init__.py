"""The implementation of `plugrad.func`, which is the public interface."""
