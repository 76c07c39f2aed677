/* bfloat16, the upper half of float32: loops of float32 compute it, block by block. */

#ifndef PLUGRAD_BFLOAT16_H
#define PLUGRAD_BFLOAT16_H

#include "arrays.h"

/* Elements that are widened at a time. */
#define NARROW_BLOCK 1024

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

/* A contiguous array of bfloat16, or NULL without an error. */
static PyArrayObject *served_narrow(PyObject *given)
{
    PyArrayObject *a = (PyArrayObject *)given;
    return PyArray_CheckExact(given) && is_bfloat16(PyArray_DESCR(a)) && is_plain(a) ? a : NULL;
}

static void widen(const void *given, float *made, npy_intp n)
{
    const npy_uint16 *restrict narrow = given;
    for (npy_intp i = 0; i < n; i++) {
        npy_uint32 bits = (npy_uint32)narrow[i] << 16;
        memcpy(made + i, &bits, sizeof(bits));
    }
}

/* To the nearest, or of two as near to the even one; a nan keeps its sign, as in ml_dtypes. */
static void narrow(const float *given, void *made, npy_intp n)
{
    npy_uint16 *restrict out = made;
    for (npy_intp i = 0; i < n; i++) {
        npy_uint32 bits;
        memcpy(&bits, given + i, sizeof(bits));
        npy_uint32 near = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        npy_uint32 nan = ((bits >> 16) & 0x8000) | 0x7fc0;
        out[i] = (npy_uint16)((bits & 0x7fffffff) > 0x7f800000 ? nan : near);
    }
}

#endif
