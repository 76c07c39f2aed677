/* Arrays of bfloat16, the upper half of float32: casts, for kernels that compute in float32. */

#ifndef PLUGRAD_KERNELS_OF_BFLOAT16_H
#define PLUGRAD_KERNELS_OF_BFLOAT16_H

#include "arrays.h"

/* The dtype is that of ml_dtypes, which NumPy numbers when it is imported. */
static int is_bfloat16(PyArray_Descr *dtype)
{
    static int number = -1;
    if (dtype->type_num == number) {
        return 1;
    }
    if (dtype->type_num < NPY_USERDEF || PyDataType_ELSIZE(dtype) != 2) {
        return 0;
    }
    const char *name = strrchr(dtype->typeobj->tp_name, '.');
    name = name == NULL ? dtype->typeobj->tp_name : name + 1;
    if (strcmp(name, "bfloat16") != 0) {
        return 0;
    }
    number = dtype->type_num;
    return 1;
}

typedef struct {
    const void *from;
    void *to;
} Cast;

static void do_widen(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Cast *work = given;
    const npy_uint16 *restrict narrow = work->from;
    npy_uint32 *restrict wide = work->to;
    for (npy_intp i = from; i < to; i++) {
        wide[i] = (npy_uint32)narrow[i] << 16;
    }
}

/* To the nearest, or of two as near to the even one; a nan keeps its sign, as in ml_dtypes. */
static void do_narrow(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Cast *work = given;
    const npy_uint32 *restrict wide = work->from;
    npy_uint16 *restrict narrow = work->to;
    for (npy_intp i = from; i < to; i++) {
        npy_uint32 bits = wide[i];
        npy_uint32 near = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        npy_uint32 nan = ((bits >> 16) & 0x8000) | 0x7fc0;
        narrow[i] = (npy_uint16)((bits & 0x7fffffff) > 0x7f800000 ? nan : near);
    }
}

static void cast_all(Part part, const void *from, void *to, npy_intp size)
{
    Cast work = {from, to};
    SHARING(size, LIGHT_SHARED, part, &work, size, PART);
}

/* A new array of the shape of another one: a, dtype. */
static PyObject *new_like_in(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyArray_CheckExact(args[0]) || !PyArray_DescrCheck(args[1]) ||
        PyDataType_REFCHK((PyArray_Descr *)args[1])) {
        return declined();
    }
    PyArrayObject *a = (PyArrayObject *)args[0];
    PyObject *made;
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(args[1]);
    WITH_MEMORY((size_t)PyArray_SIZE(a) * (size_t)PyDataType_ELSIZE(dtype), made,
                PyArray_Empty(PyArray_NDIM(a), PyArray_DIMS(a), dtype, 0));
    return made;
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
    PyObject *made = new_like_in(module, args, count);
    if (made != NULL) {
        cast_all(widens ? do_widen : do_narrow, DATA(a), DATA((PyArrayObject *)made),
                 PyArray_SIZE(a));
    }
    return made;
}

/* Writes a contiguous array of float32 to one of bfloat16 and as many elements: a, out. */
static PyObject *cast_into(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    PyArrayObject *a = count == 2 ? served(args[0]) : NULL;
    if (a == NULL || PyArray_TYPE(a) != NPY_FLOAT || !PyArray_CheckExact(args[1])) {
        return declined();
    }
    PyArrayObject *out = (PyArrayObject *)args[1];
    if (!is_bfloat16(PyArray_DESCR(out)) || !is_plain(out) || !PyArray_ISWRITEABLE(out) ||
        PyArray_SIZE(out) != PyArray_SIZE(a)) {
        return declined();
    }
    cast_all(do_narrow, DATA(a), DATA(out), PyArray_SIZE(a));
    return Py_NewRef(out);
}

#endif
