"""What calls whose arguments do not fit say. Oracle: PyTorch's words, as PyTorch writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import plugrad
from plugrad.codegen.translation.call_errors import reword, type_words

X = plugrad.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plugrad.mul(X), r"mul\(\) missing 1 required positional argument"),
        (lambda: plugrad.mul(X, X, X), r"mul\(\) takes 2 positional arguments but 3 were given"),
        (lambda: plugrad.mul(X, X, foo=1), r"mul\(\) got an unexpected keyword argument 'foo'"),
        (lambda: plugrad.mul(X, X, input=X), r"mul\(\) got multiple values for argument 'input'"),
        (lambda: X.mul(), r"mul\(\) missing 1 required positional argument"),
        (lambda: plugrad.zeros(2, foo=1), r"zeros\(\) got an unexpected keyword argument 'foo'"),
    ],
)
def test_calls_with_other_arguments_say_which(call, words) -> None:
    with pytest.raises(TypeError, match=words):
        call()


WRAPPER = """\
#include "__native_internal_plugrad.h"
        PyObject *CPyPy_creation___tensor(PyObject *self, PyObject *const *args) {
            static const char * const kwlist[] = {"data", "flag", 0};
            static CPyArg_Parser parser = {"O|$O:tensor", kwlist, 0};
            CPy_TypeError("plugrad.tensor.base.TensorBase or None", obj_data); goto fail;
            CPy_TypeError("plugrad.tensor.base.Storage", obj_self); goto fail;
fail: ;
        }
static int
Storage_set_version(Storage *self, PyObject *value, void *closure)
{
    CPy_TypeError("i64", value); return -1;
}
"""


def test_checks_of_compiled_functions_name_the_argument() -> None:
    text = reword("__native_plugrad.c", WRAPPER)
    assert 'plugrad_wrong_argument("Tensor", obj_data, "tensor", "data", kwlist' in text
    assert 'plugrad_wrong_attribute("int", value, "version")' in text
    assert 'CPy_TypeError("Storage", obj_self)' in text
    assert reword("__native_plugrad.c", text) == text


def test_the_runtime_of_mypyc_is_what_the_words_were_written_for() -> None:
    mypyc = pytest.importorskip("mypyc", reason="mypyc is needed to build only")
    folder = Path(mypyc.__file__).parent / "lib-rt"
    for name in ("getargs.c", "getargsfast.c"):
        assert "plugrad_wrong_call" in reword(name, (folder / name).read_text())
    assert "object expected; got" not in reword("exc_ops.c", (folder / "exc_ops.c").read_text())
    with pytest.raises(ValueError, match="not as expected"):
        reword("getargs.c", "int nothing;")


def test_types_have_the_names_that_users_know() -> None:
    assert type_words("plugrad.device.Device or None") == "plugrad.device"
    assert type_words("union[str, bytes]") == "str or bytes"
