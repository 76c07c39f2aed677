/* Work that several threads share: parts of a range, which nobody orders.

   The threads sleep between calls. To wake one takes some ten microseconds, so where calls follow
   each other quickly they stay awake for AWAKE at most, and meanwhile leave their core to whoever
   wants it, such as the threads of BLAS. A process that forks has none in its child, which starts
   its own. */

#ifndef PLUGRAD_THREADS_H
#define PLUGRAD_THREADS_H

#include <Python.h>

/* Elements from which on sleeping threads are worth waking. LIGHT work is hardly more than to read
   and to write. PART: how many elements a part has, but where there are few of them. */
#define SHARED (1 << 16)
#define LIGHT_SHARED (1 << 19)
#define PART (1 << 14)
#define MOST_THREADS 64

/* Threads that are awake share a fraction of that already, SOONER being its inverse. So many calls
   in a row keep them awake that begin within QUICK after the one before. */
#define SOONER 16
#define QUICK 100000 /* nanoseconds, as all times here */
#define AWAKE 50000
#define QUICK_CALLS 4

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

static int is_worth_sharing(Py_ssize_t elements, Py_ssize_t least)
{
    return 0;
}

static void share(Part part, const void *work, Py_ssize_t count, Py_ssize_t step, int threads)
{
    part(work, 0, count);
}

#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() ((void)0)
#endif
#define TRIES 1000
/* In `pool.job`: whether threads may join it; how many have joined it; its number is above these. */
#define OPEN ((uint64_t)1 << 31)
#define MEMBERS (OPEN - 1)

/* Where the next part of a thread's own stretch begins, and where that stretch ends. In lines of the
   cache of their own. */
typedef struct {
    atomic_llong next;
    long long end;
    char rest[64 - 2 * sizeof(long long)];
} Stretch;

static struct {
    Stretch stretches[MOST_THREADS];
    pthread_mutex_t owner; /* held by the call that has the threads, of which it is number 0 */
    Part part;             /* from here to `threads`: what the owner writes before a job is open */
    const void *work;
    Py_ssize_t step;
    int threads;
    _Atomic uint64_t job;
    pthread_mutex_t lock; /* of those that sleep */
    pthread_cond_t begins, ends;
    atomic_int asleep; /* threads that sleep until a job begins */
    atomic_int owner_sleeps;
    atomic_int started;   /* threads, the owner not counted */
    atomic_llong last;    /* when the last call began that might have shared its work */
    atomic_int quick;     /* how many of them followed each other quickly */
} pool = {
    .owner = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .begins = PTHREAD_COND_INITIALIZER,
    .ends = PTHREAD_COND_INITIALIZER,
};

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Whether threads share work on so many elements. The interpreter's lock is held. */
static int is_worth_sharing(Py_ssize_t elements, Py_ssize_t least)
{
    if (elements < least / SOONER) {
        return 0;
    }
    long long begins = now();
    int quick = begins - atomic_exchange(&pool.last, begins) < QUICK ? pool.quick + 1 : 0;
    atomic_store(&pool.quick, quick < QUICK_CALLS ? quick : QUICK_CALLS);
    return elements >= least || quick >= QUICK_CALLS ||
           (quick > 0 && pool.started > atomic_load(&pool.asleep));
}

/* Does parts of the stretch of thread number `me`, then of those of others. */
static void do_parts(int me)
{
    for (int i = 0; i < pool.threads; i++) {
        Stretch *stretch = &pool.stretches[(me + i) % pool.threads];
        for (;;) {
            long long from = atomic_fetch_add(&stretch->next, pool.step);
            if (from >= stretch->end) {
                break;
            }
            long long to = from + pool.step;
            pool.part(pool.work, from, to < stretch->end ? to : stretch->end);
        }
    }
}

/* Joins the job if it is open, and not the one that this thread saw last. */
static int join_job(uint64_t *seen)
{
    uint64_t job = atomic_load(&pool.job);
    while ((job & OPEN) != 0 && (job >> 32) != *seen) {
        if (atomic_compare_exchange_weak(&pool.job, &job, job + 1)) {
            *seen = job >> 32;
            return 1;
        }
    }
    return 0;
}

static void wait_and_join(uint64_t *seen)
{
    if (atomic_load(&pool.quick) > 0) {
        long long until = now() + AWAKE;
        do {
            for (int i = 0; i < 32; i++) {
                if (join_job(seen)) {
                    return;
                }
                PAUSE();
            }
            sched_yield();
        } while (now() < until);
    }
    pthread_mutex_lock(&pool.lock);
    atomic_fetch_add(&pool.asleep, 1);
    while (!join_job(seen)) {
        pthread_cond_wait(&pool.begins, &pool.lock);
    }
    atomic_fetch_sub(&pool.asleep, 1);
    pthread_mutex_unlock(&pool.lock);
}

static void *serve(void *number)
{
    uint64_t seen = 0;
    for (;;) {
        wait_and_join(&seen);
        if ((intptr_t)number < pool.threads) {
            do_parts((int)(intptr_t)number);
        }
        uint64_t left = atomic_fetch_sub(&pool.job, 1) - 1;
        if ((left & (OPEN | MEMBERS)) == 0 && atomic_load(&pool.owner_sleeps)) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.ends);
            pthread_mutex_unlock(&pool.lock);
        }
    }
    return NULL;
}

/* In the child of a fork, where the threads are gone. */
static void start_anew(void)
{
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begins, NULL);
    pthread_cond_init(&pool.ends, NULL);
    atomic_store(&pool.started, 0);
    atomic_store(&pool.job, 0);
    atomic_store(&pool.asleep, 0);
    atomic_store(&pool.owner_sleeps, 0);
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
    while (pool.started < others &&
           pthread_create(&made, NULL, serve, (void *)(intptr_t)(pool.started + 1)) == 0) {
        pthread_detach(made);
        pool.started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Lets threads join the job that `pool` describes. */
static void open_job(void)
{
    uint64_t number = (atomic_load(&pool.job) >> 32) + 1;
    atomic_store(&pool.job, (number << 32) | OPEN);
    if (atomic_load(&pool.asleep) > pool.started - (pool.threads - 1)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.begins);
        pthread_mutex_unlock(&pool.lock);
    }
}

/* Returns when all who joined have left; who has not come yet is not needed. */
static void close_job(void)
{
    uint64_t job = atomic_fetch_and(&pool.job, ~OPEN);
    /* Others have a part at most to finish, mostly in less time than it takes to sleep. */
    for (int i = 0; i < TRIES && (job & MEMBERS) != 0; i++) {
        PAUSE();
        job = atomic_load(&pool.job);
    }
    if ((job & MEMBERS) != 0) {
        pthread_mutex_lock(&pool.lock);
        atomic_store(&pool.owner_sleeps, 1);
        while ((atomic_load(&pool.job) & MEMBERS) != 0) {
            pthread_cond_wait(&pool.ends, &pool.lock);
        }
        atomic_store(&pool.owner_sleeps, 0);
        pthread_mutex_unlock(&pool.lock);
    }
}

/* Does `count` of something in parts of `step`, or of fewer where there would not be a part for each
   thread. A thread begins with a stretch of its own, the same in each call, so that what a call
   leaves in the cache of a core is there for the next one. */
static void share(Part part, const void *work, Py_ssize_t count, Py_ssize_t step, int threads)
{
    if (count < step * threads) {
        Py_ssize_t fewer = count / threads + (count % threads != 0);
        step = count < 64 * threads ? fewer : (fewer + 63) / 64 * 64;
    }
    if (threads < 2 || count <= step || pthread_mutex_trylock(&pool.owner) != 0) {
        part(work, 0, count); /* alone, too, while another call has the threads */
        return;
    }
    start_threads(threads - 1);
    Py_ssize_t parts = count / step + (count % step != 0);
    threads = parts < threads ? (int)parts : threads;
    pool.part = part;
    pool.work = work;
    pool.step = step;
    pool.threads = threads;
    for (int i = 0; i < threads; i++) {
        Py_ssize_t end = (i + 1) * parts / threads * step;
        atomic_store(&pool.stretches[i].next, i * parts / threads * step);
        pool.stretches[i].end = end < count ? end : count;
    }
    open_job();
    do_parts(0);
    close_job();
    atomic_store(&pool.last, now());
    pthread_mutex_unlock(&pool.owner);
}

#endif

/* How many rows of so many elements make a part. */
static inline Py_ssize_t rows_of_part(Py_ssize_t elements)
{
    return elements >= PART ? 1 : PART / elements;
}

#endif
