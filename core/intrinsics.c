/* The functions of plugrad/_intrinsics.py, which says what they do: a few instructions each, where
   mypyc would write a call of Python. core/setup.py has mypyc's functions call these.

   As mypyc has it, arguments are borrowed, an object that is returned is not, NULL and 2 are errors
   and 1 stands for None. */

#include <Python.h>
#include <stdint.h>
#include "intrinsics.h"

PyTypeObject *plugrad_tensor_class = NULL;
static PyTypeObject *maker = NULL; /* the native class whose function makes tensors */
static PyObject *no_arguments = NULL;

int64_t plugrad_thread_number(void) {
    return (int64_t)PyThread_get_thread_ident();
}

char plugrad_hold_tensor_class(PyObject *cls, PyObject *native) {
    if (!PyType_Check(cls) || !PyType_Check(native)) {
        PyErr_SetString(PyExc_TypeError, "expected two classes");
        return 2;
    }
    if (no_arguments == NULL && (no_arguments = PyTuple_New(0)) == NULL) {
        return 2;
    }
    Py_INCREF(cls);
    Py_XSETREF(plugrad_tensor_class, (PyTypeObject *)cls);
    Py_INCREF(native);
    Py_XSETREF(maker, (PyTypeObject *)native);
    return 1;
}

PyObject *plugrad_new_tensor(PyObject *cls) {
    if (maker == NULL || !PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, maker)) {
        PyErr_Format(PyExc_TypeError, "expected a subclass of Tensor, got %R", cls);
        return NULL;
    }
    return maker->tp_new((PyTypeObject *)cls, no_arguments, NULL);
}

/* An attribute that a class of C defines by a getter, which is looked up once for the class. Such a
   class is not changed and lives as long as the process. */
typedef struct {
    const char *name;
    PyTypeObject *type;
    getter get;
    void *closure;
} Attribute;

static PyObject *slow_attribute(Attribute *attribute, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        PyObject *found = PyObject_GetAttrString((PyObject *)type, attribute->name);
        if (found == NULL) {
            PyErr_Clear();
        } else if (Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
            PyGetSetDef *definition = ((PyGetSetDescrObject *)found)->d_getset;
            if (definition->get != NULL) {
                attribute->get = definition->get;
                attribute->closure = definition->closure;
                attribute->type = type;
            }
        }
        Py_XDECREF(found);
    }
    return PyObject_GetAttrString(object, attribute->name);
}

#define GETTER(name_, function)                                      \
    PyObject *function(PyObject *array) {                             \
        static Attribute attribute = {#name_, NULL, NULL, NULL};     \
        if (Py_TYPE(array) == attribute.type) {                      \
            return attribute.get(array, attribute.closure);          \
        }                                                            \
        return slow_attribute(&attribute, array);                    \
    }

#define ATTRIBUTE(name) GETTER(name, plugrad_array_##name)

ATTRIBUTE(dtype)
ATTRIBUTE(shape)
ATTRIBUTE(strides)

/* The value, or None in place of an error that says that there is no such attribute. */
static PyObject *or_none(PyObject *value) {
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return Py_NewRef(Py_None);
    }
    return value;
}

static GETTER(base, get_base)
static GETTER(nbytes, get_nbytes)

PyObject *plugrad_array_base(PyObject *array) {
    return or_none(get_base(array));
}

/* -113 is how mypyc's functions say that there may be an error. */
int64_t plugrad_array_nbytes(PyObject *array) {
    PyObject *value = or_none(get_nbytes(array));
    if (value == NULL) {
        return -113;
    }
    int64_t nbytes = PyLong_CheckExact(value) ? PyLong_AsLongLong(value) : -1;
    Py_DECREF(value);
    return nbytes == -1 && PyErr_Occurred() ? -113 : nbytes;
}
