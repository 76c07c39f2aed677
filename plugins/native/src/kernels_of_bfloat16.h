/* Casts between bfloat16 and float32. */

#ifndef PLUGRAD_KERNELS_OF_BFLOAT16_H
#define PLUGRAD_KERNELS_OF_BFLOAT16_H

#include "bfloat16.h"

typedef struct {
    const void *from;
    void *to;
} Cast;

static void do_widen(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Cast *work = given;
    widen((const npy_uint16 *)work->from + from, (float *)work->to + from, to - from);
}

static void do_narrow(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Cast *work = given;
    narrow((const float *)work->from + from, (npy_uint16 *)work->to + from, to - from);
}

static void cast_all(Part part, const void *from, void *to, npy_intp size)
{
    Cast work = {from, to};
    SHARING(size, LIGHT_SHARED, part, &work, size, PART);
}

/* A contiguous array of bfloat16 or float32 in the other one of these dtypes: a, dtype. */
static PyObject *cast(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_DescrCheck(args[1])) {
        return declined();
    }
    PyArrayObject *a = (PyArrayObject *)args[0];
    PyArray_Descr *dtype = (PyArray_Descr *)args[1];
    int widens = is_bfloat16(PyArray_DESCR(a)) && dtype->type_num == NPY_FLOAT;
    int narrows = PyArray_TYPE(a) == NPY_FLOAT && is_bfloat16(dtype);
    if (!is_plain(a) || !(widens || narrows) || !PyArray_ISNBO(dtype->byteorder)) {
        return declined();
    }
    PyObject *made;
    Py_INCREF(dtype);
    WITH_MEMORY((size_t)PyArray_SIZE(a) * (size_t)PyDataType_ELSIZE(dtype), made,
                PyArray_Empty(PyArray_NDIM(a), PyArray_DIMS(a), dtype, 0));
    if (made != NULL) {
        cast_all(widens ? do_widen : do_narrow, DATA(a), DATA((PyArrayObject *)made),
                 PyArray_SIZE(a));
    }
    return made;
}

#endif
