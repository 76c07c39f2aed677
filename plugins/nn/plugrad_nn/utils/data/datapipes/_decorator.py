"""Decorators of pipes: their names, whether their order is deterministic, and checks of their
inputs and samples."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from plugrad.plugins.arguments import explains
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe


class functional_datapipe:
    """A decorator that makes a class of pipes a method of all pipes.

    Args:
        name: of the method.
        enable_df_api_tracing: for pipes of data frames, which plugrad does not have.

    Raises:
        TypeError: the decorated class is not a class of this kind of pipes.
        Exception: another class has the name.

    >>> from plugrad.utils.data import IterDataPipe, functional_datapipe
    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> @functional_datapipe("doubled_in_an_example")
    ... class Doubled(IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         for sample in self.source:
    ...             yield 2 * sample
    >>> list(IterableWrapper([1, 2]).doubled_in_an_example())
    [2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        if isinstance(cls, type) and issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        elif isinstance(cls, type) and not issubclass(cls, IterDataPipe):
            raise TypeError("Can only decorate IterDataPipe")
        else:
            # A function that makes pipes, such as the result of `non_deterministic`, also works.
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        return cls


class _Setting:
    """A switch, set while a `with` block runs; the block sets it when it is made."""

    value: ClassVar[bool]

    def __init__(self, value: bool) -> None:
        self.prev = type(self).value
        type(self).value = value

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        type(self).value = self.prev


class guaranteed_datapipes_determinism(_Setting):
    """A block in which pipes with a nondeterministic order cannot be made.

    >>> from plugrad.utils.data import guaranteed_datapipes_determinism
    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> with guaranteed_datapipes_determinism():
    ...     list(IterableWrapper([1, 2]).map(str))
    ['1', '2']
    """

    value: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(True)


class runtime_validation_disabled(_Setting):
    """While its block runs, `runtime_validation` skips its checks.

    >>> from plugrad.utils.data import IterDataPipe, runtime_validation, runtime_validation_disabled
    >>> class Wrong(IterDataPipe[int]):
    ...     @runtime_validation
    ...     def __iter__(self):
    ...         yield "a"
    >>> with runtime_validation_disabled():
    ...     list(Wrong())
    ['a']
    """

    value: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(True)


class non_deterministic:
    """A decorator of a class of iterable pipes with a nondeterministic order, or of a function that
    decides this from a pipe's arguments.

    Args:
        arg: the class, or the function; that returns the decorator.

    Raises:
        TypeError: `arg` is neither, the decorated class is not such a class, or a pipe is made
            within `guaranteed_datapipes_determinism`.

    >>> from plugrad.utils.data import IterDataPipe, non_deterministic
    >>> @non_deterministic
    ... class AsTheyCome(IterDataPipe):
    ...     def __iter__(self):
    ...         yield from {3, 1}
    >>> len(list(AsTheyCome()))
    2
    """

    cls: type[IterDataPipe[Any]] | None = None

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                    f"{arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn: Callable[..., bool] = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            return self._made(self.cls, True, args, kwargs)
        cls = args[0]
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {cls.__name__} is found")
        self.cls = cls
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """A pipe of the class; the function has declared whether its order is deterministic."""
        if self.cls is None:
            raise TypeError("non_deterministic: there is no class that it decorates yet")
        is_uncertain = self.deterministic_fn(*args, **kwargs)
        if not isinstance(is_uncertain, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a "
                f"boolean value, but {type(is_uncertain)} is found"
            )
        return self._made(self.cls, is_uncertain, args, kwargs)

    @staticmethod
    def _made(cls: type[Any], is_uncertain: bool, args: Any, kwargs: Any) -> Any:
        if is_uncertain and guaranteed_datapipes_determinism.value:
            raise TypeError(
                f"{cls.__name__} is non-deterministic, but you set "
                "'guaranteed_datapipes_determinism'. You can turn off determinism for this "
                "DataPipe if that is acceptable for your application"
            )
        return cls(*args, **kwargs)


@explains
def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of a function that checks arguments annotated as pipes: `IterDataPipe`, or with
    the class of its samples: `IterDataPipe[int]`.

    Args:
        f: the function, most often `__init__` of a pipe.

    The function that it returns raises TypeError: an argument is not a pipe, or a pipe that
    declares to give something else.

    >>> from plugrad.utils.data import IterDataPipe, argument_validation
    >>> @argument_validation
    ... def first(pipe: IterDataPipe):
    ...     return next(iter(pipe))
    >>> first(3)
    Traceback (most recent call last):
    TypeError: Expected argument 'pipe' as a IterDataPipe, but found <class 'int'>
    """
    signature = inspect.signature(f)

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        for name, hint in get_type_hints(f).items():
            if name in given and _is_pipe_class(get_origin(hint) or hint):
                _check_argument(name, hint, given[name])
        return f(*args, **kwargs)

    return checked


def _check_argument(name: str, hint: Any, value: Any) -> None:
    if not isinstance(value, IterDataPipe):
        raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
    (wanted,) = get_args(hint) or (Any,)
    found = _samples_of(type(value))
    is_known = Any not in (wanted, found) and isinstance(wanted, type)
    if is_known and not issubclass(found, wanted):
        raise TypeError(
            f"Expected type of argument '{name}' as a subtype of hint {hint}, but found "
            f"{type(value).__name__}[{found.__name__}]"
        )


@explains
def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of `__iter__` of a pipe that checks each sample: a pipe that derives from
    `IterDataPipe[int]` must yield instances of `int`.

    Args:
        f: the method.

    Raises:
        TypeError: it has another name than `__iter__`.

    The iterator raises RuntimeError at a sample of another class.

    >>> from plugrad.utils.data import IterDataPipe, runtime_validation
    >>> class Whole(IterDataPipe[int]):
    ...     @runtime_validation
    ...     def __iter__(self):
    ...         yield from (1, "a")
    >>> next(iter(Whole()))
    1
    """
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def checked(self: Any) -> Iterator[Any]:
        wanted = _samples_of(type(self))
        for sample in f(self):
            if wanted is not Any and not runtime_validation_disabled.value:
                _check_sample(sample, wanted)
            yield sample

    return checked


def _check_sample(sample: Any, wanted: type) -> None:
    if not isinstance(sample, wanted):
        raise RuntimeError(
            f"Expected an instance as subtype of {wanted}, but found {sample}({type(sample)})"
        )


def _is_pipe_class(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, IterDataPipe)


def _samples_of(cls: type) -> Any:
    """The declared class of a pipe's samples: `int` for `class A(IterDataPipe[int])`. Only classes
    can be checked; anything else counts as Any."""
    for each in cls.__mro__:
        for base in vars(each).get("__orig_bases__", ()):
            if _is_pipe_class(get_origin(base)):
                (found,) = get_args(base)
                return found if isinstance(found, type) else Any
    return Any
