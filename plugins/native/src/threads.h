/* Work that several threads share: parts of a range, which nobody orders.

   The threads wait in the kernel of the system between calls and never spin, so that they take
   nothing from those of BLAS. A process that forks has none in its child, which starts its own. */

#ifndef PLUGRAD_THREADS_H
#define PLUGRAD_THREADS_H

#include <Python.h>

/* Elements from which on threads are worth waking: it takes some ten microseconds. LIGHT work is
   hardly more than to read and to write. PART: how many elements a part has at least. */
#define SHARED (1 << 16)
#define LIGHT_SHARED (1 << 19)
#define PART (1 << 14)
#define MOST_THREADS 64

/* Does the part of `work` from one index to before another one. */
typedef void (*Part)(const void *work, Py_ssize_t from, Py_ssize_t to);

/* What tells how many threads are allowed; NULL: one. */
static PyObject *thread_count = NULL;

/* How many threads a call on so many elements uses. The interpreter's lock is held. */
static int threads_for(Py_ssize_t elements, Py_ssize_t least)
{
    if (elements < least || thread_count == NULL) {
        return 1;
    }
    PyObject *found = PyObject_CallNoArgs(thread_count);
    long count = found == NULL ? 1 : PyLong_AsLong(found);
    Py_XDECREF(found);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 1;
    }
    return count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : (int)count;
}

#if defined(_WIN32)

static void share(Part part, const void *work, Py_ssize_t count, Py_ssize_t step, int threads)
{
    part(work, 0, count);
}

#else

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void)0)
#endif
#define TRIES 1000

static struct {
    pthread_mutex_t owner; /* held by the call that has the threads */
    pthread_mutex_t lock;  /* of all below */
    pthread_cond_t begins, ends;
    int started;          /* threads that wait or work */
    int wanted;           /* threads that may still join the work */
    atomic_int working;   /* threads that have joined it */
    Part part;
    const void *work;
    Py_ssize_t count, step;
    atomic_llong next; /* where the next part begins */
} pool = {
    .owner = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .begins = PTHREAD_COND_INITIALIZER,
    .ends = PTHREAD_COND_INITIALIZER,
};

static void do_parts(Part part, const void *work, Py_ssize_t count, Py_ssize_t step)
{
    for (;;) {
        Py_ssize_t from = (Py_ssize_t)atomic_fetch_add(&pool.next, step);
        if (from >= count) {
            return;
        }
        part(work, from, count - from < step ? count : from + step);
    }
}

static void *serve(void *nothing)
{
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.wanted == 0) {
            pthread_cond_wait(&pool.begins, &pool.lock);
        }
        pool.wanted--;
        pool.working++;
        Part part = pool.part;
        const void *work = pool.work;
        Py_ssize_t count = pool.count, step = pool.step;
        pthread_mutex_unlock(&pool.lock);
        do_parts(part, work, count, step);
        pthread_mutex_lock(&pool.lock);
        if (--pool.working == 0) {
            pthread_cond_signal(&pool.ends);
        }
    }
    return nothing;
}

/* In the child of a fork, where the threads are gone. */
static void start_anew(void)
{
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begins, NULL);
    pthread_cond_init(&pool.ends, NULL);
    pool.started = pool.wanted = pool.working = 0;
}

static void start_threads(int others)
{
    static int prepared = 0;
    if (!prepared) {
        prepared = 1;
        pthread_atfork(NULL, NULL, start_anew);
    }
    /* Signals are the interpreter's: they must interrupt what its threads wait for. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t made;
    while (pool.started < others && pthread_create(&made, NULL, serve, NULL) == 0) {
        pthread_detach(made);
        pool.started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Does `count` of something in parts of `step`. */
static void share(Part part, const void *work, Py_ssize_t count, Py_ssize_t step, int threads)
{
    if (threads < 2 || count <= step || pthread_mutex_trylock(&pool.owner) != 0) {
        part(work, 0, count); /* alone, too, while another call has the threads */
        return;
    }
    pthread_mutex_lock(&pool.lock);
    start_threads(threads - 1);
    pool.part = part;
    pool.work = work;
    pool.count = count;
    pool.step = step;
    atomic_store(&pool.next, 0);
    pool.wanted = pool.started < threads - 1 ? pool.started : threads - 1;
    pthread_cond_broadcast(&pool.begins);
    pthread_mutex_unlock(&pool.lock);
    do_parts(part, work, count, step);
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0; /* who has not come yet is not needed */
    pthread_mutex_unlock(&pool.lock);
    /* Others have a part at most to finish, mostly in less time than it takes to sleep. */
    for (int i = 0; i < TRIES && atomic_load(&pool.working) > 0; i++) {
        PAUSE();
    }
    pthread_mutex_lock(&pool.lock);
    while (pool.working > 0) {
        pthread_cond_wait(&pool.ends, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.owner);
}

#endif

/* How many rows of so many elements make a part. */
static inline Py_ssize_t rows_of_part(Py_ssize_t elements)
{
    return elements >= PART ? 1 : PART / elements;
}

#endif
