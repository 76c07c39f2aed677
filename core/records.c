/* Logs of records, for plugrad/autograd/journal: the functions of plugrad/_intrinsics.py that make,
   fill and read one.

   A recording writes about twenty records for each operator of a program, and most of their values
   are numbers. A log keeps them as machine words: no object is made for a number, and the cyclic
   collector has nothing to look through. Its objects are dtypes, operators, shapes and the like,
   which do not lead back to a log.

   A record is a word that says what it consists of, then the time if its kind has one, its numbers
   and its objects. No code of Python runs while one is written, so records stay whole, whichever
   thread or collection of garbage writes in between. */

#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* `FIRST_TIMED` of _intrinsics.py: kinds from here on have the time. */
#define FIRST_TIMED 16

#define HEADER(kind, numbers, objects) \
    ((int64_t)(kind) | (int64_t)(numbers) << 8 | (int64_t)(objects) << 16)
#define KIND(header) ((header) & 0xff)
#define NUMBERS(header) ((header) >> 8 & 0xff)
#define OBJECTS(header) ((header) >> 16 & 0xff)
#define IS_TIMED(kind) ((kind) >= FIRST_TIMED)

typedef union {
    int64_t number;
    PyObject *object;
} Word;

typedef struct {
    PyObject_HEAD
    Word *words;
    Py_ssize_t size;
    Py_ssize_t room;
} Records;

static void dealloc(PyObject *self) {
    Records *records = (Records *)self;
    Py_ssize_t index = 0;
    while (index < records->size) {
        int64_t header = records->words[index].number;
        index += 1 + IS_TIMED(KIND(header)) + NUMBERS(header);
        for (int64_t count = OBJECTS(header); count > 0; count--) {
            Py_DECREF(records->words[index++].object);
        }
    }
    PyMem_Free(records->words);
    PyObject_Free(self);
}

static PyTypeObject records_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "plugrad.Records",
    .tp_basicsize = sizeof(Records),
    .tp_dealloc = dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};

PyObject *plugrad_new_log(void) {
    if (PyType_Ready(&records_type) < 0) {
        return NULL;
    }
    Records *records = PyObject_New(Records, &records_type);
    if (records != NULL) {
        records->words = NULL;
        records->size = records->room = 0;
    }
    return (PyObject *)records;
}

static int is_log(PyObject *log) {
    if (Py_IS_TYPE(log, &records_type)) {
        return 1;
    }
    PyErr_Format(PyExc_TypeError, "expected a log of records, got %R", log);
    return 0;
}

/* Where the next `count` words go, or NULL. */
static Word *more(Records *records, Py_ssize_t count) {
    if (records->size + count > records->room) {
        Py_ssize_t room = records->room + records->room / 2 + 1024;
        Word *words = PyMem_Realloc(records->words, room * sizeof(Word));
        if (words == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        records->words = words;
        records->room = room;
    }
    return records->words + records->size;
}

/* The time of `time.perf_counter_ns()`; below 0 for an error. */
static int64_t now(void) {
#ifdef __linux__
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) == 0) {
        return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    }
#endif
    static PyObject *function = NULL;
    if (function == NULL) {
        PyObject *module = PyImport_ImportModule("time");
        function = module ? PyObject_GetAttrString(module, "perf_counter_ns") : NULL;
        Py_XDECREF(module);
    }
    PyObject *time_ = function ? PyObject_CallNoArgs(function) : NULL;
    int64_t found = time_ ? PyLong_AsLongLong(time_) : -1;
    Py_XDECREF(time_);
    return found;
}

static inline char append(
    PyObject *log, int64_t kind, const int64_t *numbers, int count, PyObject *const *objects,
    int object_count) {
    if (!is_log(log)) {
        return 2;
    }
    int timed = IS_TIMED(kind);
    int64_t time = timed ? now() : 0;
    if (time < 0) {
        return 2;
    }
    Word *word = more((Records *)log, 1 + timed + count + object_count);
    if (word == NULL) {
        return 2;
    }
    word++->number = HEADER(kind, count, object_count);
    if (timed) {
        word++->number = time;
    }
    for (int index = 0; index < count; index++) {
        word++->number = numbers[index];
    }
    for (int index = 0; index < object_count; index++) {
        word++->object = Py_NewRef(objects[index]);
    }
    ((Records *)log)->size += 1 + timed + count + object_count;
    return 1;
}

#define COUNT(array) (int)(sizeof(array) / sizeof(array[0]))

char plugrad_log0(PyObject *log, int64_t kind, int64_t a, int64_t b) {
    int64_t numbers[] = {a, b};
    return append(log, kind, numbers, COUNT(numbers), NULL, 0);
}

char plugrad_log1(PyObject *log, int64_t kind, int64_t a, int64_t b, PyObject *x) {
    int64_t numbers[] = {a, b};
    PyObject *objects[] = {x};
    return append(log, kind, numbers, COUNT(numbers), objects, COUNT(objects));
}

char plugrad_log2(
    PyObject *log, int64_t kind, int64_t a, int64_t b, int64_t c, int64_t d, PyObject *x,
    PyObject *y) {
    int64_t numbers[] = {a, b, c, d};
    PyObject *objects[] = {x, y};
    return append(log, kind, numbers, COUNT(numbers), objects, COUNT(objects));
}

char plugrad_log4(
    PyObject *log, int64_t kind, int64_t a, int64_t b, int64_t c, int64_t d, PyObject *x,
    PyObject *y, PyObject *z, PyObject *w) {
    int64_t numbers[] = {a, b, c, d};
    PyObject *objects[] = {x, y, z, w};
    return append(log, kind, numbers, COUNT(numbers), objects, COUNT(objects));
}

/* The record at an index, which goes on to the next one. A new tuple may start a collection of
   garbage, which may write into the log: its words may be elsewhere then. */
static PyObject *as_tuple(const Records *records, Py_ssize_t *index) {
    int64_t header = records->words[(*index)++].number;
    int64_t kind = KIND(header);
    int64_t time = IS_TIMED(kind) ? records->words[(*index)++].number : 0;
    Py_ssize_t numbers = NUMBERS(header);
    Py_ssize_t count = 2 + numbers + OBJECTS(header);
    PyObject *tuple = PyTuple_New(count);
    if (tuple == NULL) {
        return NULL;
    }
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *value;
        if (place < 2) {
            value = PyLong_FromLongLong(place == 0 ? kind : time);
        } else if (place < 2 + numbers) {
            value = PyLong_FromLongLong(records->words[(*index)++].number);
        } else {
            value = Py_NewRef(records->words[(*index)++].object);
        }
        if (value == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, place, value);
    }
    return tuple;
}

PyObject *plugrad_logged(PyObject *log) {
    PyObject *found = is_log(log) ? PyList_New(0) : NULL;
    if (found == NULL) {
        return NULL;
    }
    Records *records = (Records *)log;
    Py_ssize_t end = records->size;
    Py_ssize_t index = 0;
    while (index < end) {
        PyObject *record = as_tuple(records, &index);
        int failed = record == NULL ? -1 : PyList_Append(found, record);
        Py_XDECREF(record);
        if (failed < 0) {
            Py_DECREF(found);
            return NULL;
        }
    }
    return found;
}
