/* Memory of large arrays. What is freed is kept for the next array of about its size. The C library
   gives large blocks back to the system after each step of a training loop, and to get a page from
   there takes as long as to fill it. */

#ifndef PLUGRAD_MEMORY_H
#define PLUGRAD_MEMORY_H

#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <sys/mman.h>
#endif

/* Bytes of an array from which on its memory is kept, and up to which; bytes that are kept at most. */
#define LEAST_KEPT ((size_t)1 << 17)
#define LARGEST_KEPT ((size_t)1 << 26)
#define KEPT_AT_MOST ((size_t)1 << 26)
/* A block has one of eight sizes between two powers of two, so an eighth is lost at most. */
#define CLASSES 73
/* In front of the data, which begin with a page. A load waits for an earlier store whose address has
   the same last twelve bits. So results that begin a little later in their page than operands, for
   instance those of NumPy, are written a third slower. */
#define HEAD ((size_t)4096)
#define HUGE_PAGE ((size_t)1 << 21)

typedef struct Block {
    struct Block *next;
    size_t capacity; /* bytes of data */
    int kind;        /* the class of its capacity; -1: it is not kept */
} Block;

/* The interpreter's lock protects these. */
static struct {
    Block *free[CLASSES];
    size_t bytes;
} kept;

/* The class of a size, which becomes the capacity of that class; -1 for those that are not kept. */
static int class_of(size_t *size)
{
    if (*size < LEAST_KEPT || *size > LARGEST_KEPT) {
        return -1;
    }
    size_t octave = LEAST_KEPT, eighth;
    int kind = 0;
    while (octave * 2 <= *size) {
        octave *= 2;
        kind += 8;
    }
    eighth = octave / 8;
    size_t steps = (*size - octave + eighth - 1) / eighth;
    *size = octave + steps * eighth;
    return kind + (int)steps;
}

static Block *block_of(void *data)
{
    return (Block *)((char *)data - HEAD);
}

static void *new_block(void *nothing, size_t size)
{
    int kind = class_of(&size);
    Block *block = kind < 0 ? NULL : kept.free[kind];
    if (block != NULL) {
        kept.free[kind] = block->next;
        kept.bytes -= size;
        return (char *)block + HEAD;
    }
#if defined(_WIN32)
    block = malloc(size + HEAD);
#else
    void *made = NULL;
    size_t page = size < HUGE_PAGE ? HEAD : HUGE_PAGE;
    block = size > SIZE_MAX - HEAD || posix_memalign(&made, page, size + HEAD) != 0 ? NULL : made;
#endif
    if (block == NULL) {
        return NULL;
    }
#if defined(MADV_HUGEPAGE)
    if (size >= HUGE_PAGE) {
        madvise(block, size + HEAD, MADV_HUGEPAGE); /* one entry of the TLB for each 512 pages */
    }
#endif
    block->capacity = size;
    block->kind = kind;
    return (char *)block + HEAD;
}

/* Gives all that is kept back to the C library. */
static void give_back(void)
{
    for (int kind = 0; kind < CLASSES; kind++) {
        while (kept.free[kind] != NULL) {
            Block *block = kept.free[kind];
            kept.free[kind] = block->next;
            free(block);
        }
    }
    kept.bytes = 0;
}

static void free_block(void *nothing, void *data, size_t size)
{
    if (data == NULL) {
        return;
    }
    Block *block = block_of(data);
    if (block->kind < 0) {
        free(block);
        return;
    }
    if (kept.bytes + block->capacity > KEPT_AT_MOST) {
        give_back(); /* most of it is of sizes that are not asked for any more */
    }
    block->next = kept.free[block->kind];
    kept.free[block->kind] = block;
    kept.bytes += block->capacity;
}

static void *new_zero_block(void *nothing, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    void *made = new_block(nothing, count * size);
    return made == NULL ? NULL : memset(made, 0, count * size);
}

static void *other_size(void *nothing, void *data, size_t size)
{
    void *made = new_block(nothing, size);
    if (made != NULL && data != NULL) {
        size_t before = block_of(data)->capacity;
        memcpy(made, data, before < size ? before : size);
        free_block(nothing, data, before);
    }
    return made;
}

static PyDataMem_Handler keeping = {
    "plugrad_native", 1, {NULL, new_block, new_zero_block, other_size, free_block}};
static PyObject *keeping_handler = NULL, *plain_handler = NULL;

/* Lets large arrays have such memory; whether that worked. */
static int prepare_memory(void)
{
#if !defined(Py_GIL_DISABLED)
    plain_handler = PyDataMem_GetHandler();
    keeping_handler = PyCapsule_New(&keeping, "mem_handler", NULL);
    return plain_handler != NULL && keeping_handler != NULL;
#else
    return 1;
#endif
}

/* Calls `MAKE`, which makes an array of so many bytes, with memory of this kind. Where somebody has
   chosen another kind for all arrays, it is that. */
#define WITH_MEMORY(bytes, made, MAKE)                                                             \
    do {                                                                                           \
        PyObject *before = NULL;                                                                   \
        if ((bytes) >= LEAST_KEPT && (bytes) <= LARGEST_KEPT && keeping_handler != NULL) {         \
            before = PyDataMem_SetHandler(keeping_handler);                                        \
            if (before == NULL) {                                                                  \
                PyErr_Clear();                                                                     \
            } else if (before != plain_handler) {                                                  \
                Py_XDECREF(PyDataMem_SetHandler(before));                                          \
                Py_CLEAR(before);                                                                  \
            }                                                                                      \
        }                                                                                          \
        made = (MAKE);                                                                             \
        if (before != NULL) {                                                                      \
            Py_XDECREF(PyDataMem_SetHandler(before));                                              \
            Py_DECREF(before);                                                                     \
        }                                                                                          \
    } while (0)

#endif
