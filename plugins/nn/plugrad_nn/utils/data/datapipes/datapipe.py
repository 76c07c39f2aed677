"""IterDataPipe and MapDataPipe: the base of all pipes, and the methods that chain them."""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from plugrad_nn.utils.data.datapipes._hook_iterator import SingleIterator, guard
from plugrad_nn.utils.data.dataset import Dataset, IterableDataset

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Chained:
    """Methods by name, which make a further pipe of this one, and hooks of pickling and printing.

    IterDataPipe and MapDataPipe have a table of methods and hooks each, which their subclasses use.
    """

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: ClassVar[Callable[[Any], Any] | None] = None
    getstate_hook: ClassVar[Callable[[Any], Any] | None] = None
    str_hook: ClassVar[Callable[[Any], str] | None] = None
    repr_hook: ClassVar[Callable[[Any], str] | None] = None

    def __getattr__(self, attribute_name: str) -> Any:
        function = type(self).functions.get(attribute_name)
        if function is None:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{attribute_name}"
            )
        method = functools.partial(function, self)
        functools.update_wrapper(method, function, assigned=("__doc__",))
        return method

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Give all pipes of this kind a method: `function` gets the pipe first."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Give all pipes of this kind a method that makes a pipe of the given class.

        Raises:
            Exception: the name is taken.
            NotImplementedError: `enable_df_api_tracing`, as there are no data frames.
        """
        if enable_df_api_tracing:
            raise NotImplementedError(
                "functional_datapipe: enable_df_api_tracing=True needs pipes of data frames, which "
                "plugrad does not have"
            )
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )

        @functools.wraps(cls_to_register, assigned=("__doc__",), updated=())
        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = make

    @classmethod
    def _kind(cls) -> type[_Chained]:
        """The class that owns this table."""
        return next(each for each in cls.__mro__ if "functions" in vars(each))

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """A function that returns a pipe's state from its default state; None for none.

        Raises:
            RuntimeError: there is a hook already.
        """
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """A function that pickles a pipe, unless it raises NotImplementedError; None for none.

        Raises:
            RuntimeError: there is a hook already.
        """
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name: str, hook: Any) -> None:
        kind = cls._kind()
        if hook is not None and getattr(kind, name) is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(kind, name, hook)

    def __getstate__(self) -> Any:
        state = self._state()
        hook = type(self).getstate_hook
        return state if hook is None else hook(state)

    def _state(self) -> dict[str, Any]:
        """The state to pickle; a subclass leaves out what it can rebuild."""
        return dict(vars(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]  # by typeshed

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(_Chained, SingleIterator, IterableDataset[T_co]):
    """A pipe that yields samples in sequence: a subclass defines `__iter__`.

    A pipe has one valid iterator: a new one calls `reset()`, and earlier iterators raise
    RuntimeError. `fork` makes pipes that can be read in parallel. Names from `functional_datapipe`
    are methods of every pipe: `pipe.map(f).batch(2)`.

    >>> from plugrad.utils.data import IterDataPipe
    >>> class Count(IterDataPipe):
    ...     def __init__(self, stop):
    ...         self.stop = stop
    ...     def __iter__(self):
    ...         yield from range(self.stop)
    >>> list(Count(5).filter(bool).batch(3))
    [[1, 2, 3], [4]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard(cls)

    def __iter__(self) -> Iterator[T_co]:
        return self


guard(IterDataPipe)


class DFIterDataPipe(IterDataPipe[T_co]):
    """The base of pipes of data frames, which plugrad does not have.

    >>> from plugrad.utils.data import DFIterDataPipe, IterDataPipe
    >>> issubclass(DFIterDataPipe, IterDataPipe)
    True
    """

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Chained, Dataset[T_co]):
    """A pipe with samples by key: a subclass defines `__getitem__` and `__len__`.

    >>> from plugrad.utils.data import MapDataPipe
    >>> class Squares(MapDataPipe):
    ...     def __getitem__(self, index):
    ...         return index * index
    ...     def __len__(self):
    ...         return 4
    >>> list(Squares().batch(3))
    [[0, 1, 4], [9]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DataChunk(list[T]):
    """A batch that a pipe makes: a list.

    Args:
        items: the samples.

    >>> from plugrad.utils.data import DataChunk
    >>> DataChunk([1, 2]).as_str("- ")
    '- [1, 2]'
    """

    def __init__(self, items: Iterable[T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples between brackets, after `indent`.

        >>> from plugrad.utils.data import DataChunk
        >>> DataChunk([1, 2]).as_str()
        '[1, 2]'
        """
        return indent + "[" + ", ".join(map(str, iter(self))) + "]"

    def __iter__(self) -> Iterator[T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[T]:
        """The samples as they were given.

        >>> from plugrad.utils.data import DataChunk
        >>> list(DataChunk([1, 2]).raw_iterator())
        [1, 2]
        """
        yield from self.items
