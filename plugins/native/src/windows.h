/* Pooling, for one dtype; read once for each by kinds.h.

   Windows slide over planes, or over several planes at once in three dimensions. A plane is first
   taken apart, along both of its dimensions: there is one part for each remainder of its places by
   the stride, with padding. So what a tap reads for one window after another lies side by side, for
   any stride, dilation and padding:

       a line 0 1 2 3 4 5 6, stride 2, padding 1: parts - 1 3 5 and 0 2 4 6
       the taps 0, 1, 2 of all windows: - 1 3, 0 2 4, and 1 3 5

   The lines of a part are longer than there are windows, for the last taps. Loops run over all
   windows of a plane, with what is between lines, to the end of a vector; nobody reads that. */

#ifndef PLUGRAD_WINDOWS_H
#define PLUGRAD_WINDOWS_H

#define MOST_TAPS 128 /* along the last two dimensions */
#define VECTOR 8
#define PAIRS 4

/* How one dimension is taken apart. */
typedef struct {
    npy_intp parts, length;    /* how many there are, and how long each is */
    npy_intp part[MOST_TAPS];  /* which part a tap reads */
    npy_intp shift[MOST_TAPS]; /* and from which of its elements on */
    npy_intp first[MOST_TAPS]; /* of each part, the first tap that reads it */
} Apart;

/* Windows over three dimensions, the first of which may have the size 1, and what is computed. */
typedef struct {
    npy_intp sizes[3], kernel[3], stride[3], padding[3], dilation[3], out[3];
    npy_intp area, windows; /* places and windows of all planes that belong together */
    Apart lines, columns;
    npy_intp part;    /* elements of a part of a plane */
    npy_intp plane;   /* and of all of them */
    npy_intp reach;   /* of the windows of a plane, to the end of a vector */
    const void *from;
    void *to;
    npy_int64 *positions; /* NULL if nobody asks for them */
    int with_padding;     /* whether padding counts for the mean */
    double divisor;       /* of all windows, or nan if each has its own */
    int *failed;
} Sliding;

/* The taps of a window that read no padding, along a dimension: from `*first` to before the one
   that is returned. */
static inline npy_intp taps_inside(const Sliding *w, int d, npy_intp window, npy_intp *first)
{
    npy_intp start = window * w->stride[d] - w->padding[d], spread = w->dilation[d];
    *first = start < 0 ? (-start + spread - 1) / spread : 0;
    if (start >= w->sizes[d]) {
        return 0;
    }
    npy_intp end = (w->sizes[d] - 1 - start) / spread + 1;
    return end < w->kernel[d] ? end : w->kernel[d];
}

/* How many elements of a window the mean counts, along a dimension; there is no dilation. */
static inline npy_intp counted(const Sliding *w, int d, npy_intp window)
{
    npy_intp start = window * w->stride[d] - w->padding[d], end = start + w->kernel[d];
    npy_intp size = w->sizes[d] + (w->with_padding ? w->padding[d] : 0);
    return (end < size ? end : size) - (start < 0 && !w->with_padding ? 0 : start);
}

/* Which elements of a part are places of the array, along a dimension: from `*first` to before the
   one that is returned. Element i is place `*place` + i * stride. */
static inline npy_intp places_of_part(const Sliding *w, int d, npy_intp part, npy_intp *first,
                                      npy_intp *place)
{
    const Apart *apart = d == 1 ? &w->lines : &w->columns;
    npy_intp tap = apart->first[part], stride = w->stride[d];
    *place = tap * w->dilation[d] - apart->shift[tap] * stride - w->padding[d];
    *first = *place < 0 ? (-*place + stride - 1) / stride : 0;
    npy_intp end = w->sizes[d] <= *place ? 0 : (w->sizes[d] - 1 - *place) / stride + 1;
    end = end < apart->length ? end : apart->length;
    *first = *first < end ? *first : end;
    return end;
}

/* Whether what is computed of a plane is what the result has of it, with nothing between lines. */
static inline int is_joined(const Sliding *w)
{
    return w->reach == w->out[1] * w->out[2] && w->columns.length == w->out[2];
}

/* Whether there is one window, which reads all places. */
static inline int is_whole(const Sliding *w)
{
    int whole = w->windows == 1;
    for (int d = 0; d < 3; d++) {
        whole &= w->padding[d] == 0 && w->dilation[d] == 1 && w->kernel[d] == w->sizes[d];
    }
    return whole;
}

/* Where what a tap reads begins in the parts of a plane. */
static inline npy_intp read_by(const Sliding *w, npy_intp b, npy_intp c)
{
    npy_intp part = w->lines.part[b] * w->columns.parts + w->columns.part[c];
    return part * w->part + w->lines.shift[b] * w->columns.length + w->columns.shift[c];
}

#endif

/* Every `stride`th place of a line, or with `back` what was taken from there. */
static inline void F(take_places)(REAL *restrict outside, REAL *restrict inside, npy_intp first,
                                  npy_intp end, npy_intp stride, int back)
{
    for (npy_intp i = first; i < end; i++) {
        if (back) {
            outside[i * stride] = inside[i];
        } else {
            inside[i] = outside[i * stride];
        }
    }
}

/* The same of both parts of a line for a stride of 2, some at a time. */
static inline npy_intp F(take_pairs)(REAL *restrict outside, REAL *restrict even,
                                     REAL *restrict odd, npy_intp first, npy_intp end, int back)
{
    npy_intp i = first;
    for (; i + PAIRS <= end; i += PAIRS) {
        for (int k = 0; k < PAIRS; k++) {
            if (back) {
                outside[2 * (i + k)] = even[i + k];
                outside[2 * (i + k) + 1] = odd[i + k];
            } else {
                even[i + k] = outside[2 * (i + k)];
                odd[i + k] = outside[2 * (i + k) + 1];
            }
        }
    }
    return i;
}

/* Takes a plane apart, or with `back` puts it together; padding stays as it is. */
static inline void F(take_apart)(const Sliding *w, REAL *plane, REAL *parts, int back)
{
    npy_intp stride = w->stride[2], count = w->columns.parts;
    npy_intp first[MOST_TAPS], place[MOST_TAPS], end[MOST_TAPS];
    for (npy_intp q = 0; q < count; q++) {
        end[q] = places_of_part(w, 2, q, first + q, place + q);
    }
    int pairs = stride == 2 && count == 2;
    npy_intp lowest = pairs && first[1] > first[0] ? first[1] : first[0];
    npy_intp highest = pairs && end[1] < end[0] ? end[1] : end[0];
    for (npy_intp p = 0; p < w->lines.parts; p++) {
        npy_intp top, line, bottom = places_of_part(w, 1, p, &top, &line);
        for (npy_intp l = top; l < bottom; l++) {
            REAL *inside = parts + p * count * w->part + l * w->columns.length;
            REAL *outside = plane + (line + l * w->stride[1]) * w->sizes[2];
            if (stride == 1) {
                REAL *source = outside + first[0] + place[0], *target = inside + first[0];
                size_t bytes = (size_t)(end[0] - first[0]) * sizeof(REAL);
                memcpy(back ? source : target, back ? target : source, bytes);
                continue;
            }
            npy_intp next = lowest;
            if (pairs) {
                REAL *odd = inside + w->part;
                next = F(take_pairs)(outside + place[0], inside, odd, lowest, highest, back);
            }
            for (npy_intp q = 0; q < count; q++) {
                REAL *target = inside + q * w->part, *source = outside + place[q];
                npy_intp middle = pairs ? lowest : end[q];
                F(take_places)(source, target, first[q], middle, stride, back);
                if (pairs) {
                    F(take_places)(source, target, next, end[q], stride, back);
                }
            }
        }
    }
}

/* All windows of a plane one after another, without what is between lines; or back, with it. */
static void F(join_lines)(const Sliding *w, const REAL *restrict x, REAL *restrict out, int back)
{
    npy_intp n = w->out[2], length = w->columns.length;
    if (n == length) {
        memcpy(out, x, (size_t)(n * w->out[1]) * sizeof(REAL));
        return;
    }
    for (npy_intp l = 0; l < w->out[1]; l++) {
        const REAL *source = x + l * (back ? n : length);
        memcpy(out + l * (back ? length : n), source, (size_t)n * sizeof(REAL));
    }
}

/* Up to three taps, of all windows of a plane. The first of the largest elements counts, and a nan
   more than those before it. What the window had before is not read if this `begins`; `first` are
   the taps that windows have if nothing is larger than -inf. */
static inline void F(take_larger)(const REAL *x0, const REAL *x1, const REAL *x2, INTEGER tap0,
                                  INTEGER tap1, INTEGER tap2, int taps,
                                  const INTEGER *restrict first, REAL *restrict best,
                                  INTEGER *restrict chosen, npy_intp n, int begins)
{
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        REAL top = begins ? (REAL)-INFINITY : best[i], one = x0[i];
        INTEGER tap = begins ? first[i] : chosen[i];
        int larger = (one > top) | (one != one);
        top = larger ? one : top;
        tap = larger ? tap0 : tap;
        if (taps > 1) {
            one = x1[i];
            larger = (one > top) | (one != one);
            top = larger ? one : top;
            tap = larger ? tap1 : tap;
        }
        if (taps > 2) {
            one = x2[i];
            larger = (one > top) | (one != one);
            top = larger ? one : top;
            tap = larger ? tap2 : tap;
        }
        best[i] = top;
        chosen[i] = tap;
    }
}

/* The same without the taps. */
static inline void F(take_larger_value)(const REAL *x0, const REAL *x1, const REAL *x2, int taps,
                                        REAL *restrict best, npy_intp n, int begins)
{
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        REAL top = begins ? (REAL)-INFINITY : best[i], one = x0[i];
        top = ((one > top) | (one != one)) ? one : top;
        if (taps > 1) {
            one = x1[i];
            top = ((one > top) | (one != one)) ? one : top;
        }
        if (taps > 2) {
            one = x2[i];
            top = ((one > top) | (one != one)) ? one : top;
        }
        best[i] = top;
    }
}

/* Taps along a line, for all windows of a plane. */
static void F(take_line_of_taps)(const Sliding *w, const REAL *parts, npy_intp b, npy_intp tap,
                                 const INTEGER *first, REAL *best, INTEGER *chosen, int begins)
{
    npy_intp n = w->reach;
    for (npy_intp c = 0; c < w->kernel[2]; c += 3, begins = 0) {
        int taps = w->kernel[2] - c < 3 ? (int)(w->kernel[2] - c) : 3;
        const REAL *x[3];
        INTEGER numbers[3];
        for (int k = 0; k < 3; k++) {
            npy_intp one = c + (k < taps ? k : 0);
            x[k] = parts + read_by(w, b, one);
            numbers[k] = (INTEGER)(tap + one * w->dilation[2]);
        }
#define WITH(count, begin)                                                                         \
    if (chosen == NULL) {                                                                          \
        F(take_larger_value)(x[0], x[1], x[2], count, best, n, begin);                             \
    } else {                                                                                       \
        F(take_larger)(x[0], x[1], x[2], numbers[0], numbers[1], numbers[2], count, first, best,   \
                       chosen, n, begin);                                                          \
    }
        if (taps == 3 && begins) {
            WITH(3, 1)
        } else if (taps == 3) {
            WITH(3, 0)
        } else if (taps == 2 && begins) {
            WITH(2, 1)
        } else if (taps == 2) {
            WITH(2, 0)
        } else if (begins) {
            WITH(1, 1)
        } else {
            WITH(1, 0)
        }
#undef WITH
    }
}

/* Memory for all parts of all planes, filled with padding, and for more behind them; NULL if there
   is none. */
static REAL *F(memory)(const Sliding *w, npy_intp more, REAL fill)
{
    npy_intp size = w->sizes[0] * w->plane;
    REAL *made = PyMem_RawMalloc((size_t)(size + more) * sizeof(REAL));
    if (made == NULL) {
        *w->failed = 1;
        return NULL;
    }
    for (npy_intp i = 0; i < size; i++) {
        made[i] = fill;
    }
    return made;
}

/* For each window of a plane, where it starts, and its first tap that reads no padding, counted in
   places from there. */
static void F(find_corners)(const Sliding *w, INTEGER *corners, INTEGER *first)
{
    memset(first, 0, (size_t)w->reach * sizeof(INTEGER));
    for (npy_intp y = 0; y < w->out[1]; y++) {
        npy_intp b, c, line = y * w->stride[1] - w->padding[1];
        taps_inside(w, 1, y, &b);
        for (npy_intp x = 0; x < w->out[2]; x++) {
            taps_inside(w, 2, x, &c);
            npy_intp place = line * w->sizes[2] + x * w->stride[2] - w->padding[2];
            corners[y * w->out[2] + x] = (INTEGER)place;
            first[y * w->columns.length + x] =
                (INTEGER)(b * w->dilation[1] * w->sizes[2] + c * w->dilation[2]);
        }
    }
}

/* The largest element of all, and the last nan if there is one. */
static void F(take_largest)(const Sliding *w, Py_ssize_t group)
{
    const REAL *x = (const REAL *)w->from + group * w->area;
    npy_intp found = F(first_largest)(x, w->area);
    if (x[found] != x[found]) {
        for (found = w->area - 1; x[found] == x[found]; found--) {
        }
    }
    ((REAL *)w->to)[group] = x[found];
    if (w->positions != NULL) {
        w->positions[group] = found;
    }
}

/* The largest elements of windows, in planes or groups of them from one to before another one. */
static void F(max_pool)(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Sliding *w = given;
    if (is_whole(w)) {
        for (Py_ssize_t group = from; group < to; group++) {
            F(take_largest)(w, group);
        }
        return;
    }
    npy_intp n = w->reach, windows = w->out[1] * w->out[2];
    REAL *parts = F(memory)(w, 4 * n, (REAL)-INFINITY);
    if (parts == NULL) {
        return;
    }
    REAL *best = parts + w->sizes[0] * w->plane;
    INTEGER *chosen = (INTEGER *)(best + n), *corners = chosen + n, *first = corners + n;
    F(find_corners)(w, corners, first);
    for (Py_ssize_t group = from; group < to; group++) {
        REAL *x = (REAL *)w->from + group * w->area;
        for (npy_intp z = 0; z < w->sizes[0]; z++) {
            F(take_apart)(w, x + z * w->sizes[1] * w->sizes[2], parts + z * w->plane, 0);
        }
        for (npy_intp z = 0; z < w->out[0]; z++) {
            npy_intp tap, end = taps_inside(w, 0, z, &tap);
            npy_intp place = z * w->stride[0] - w->padding[0], area = w->sizes[1] * w->sizes[2];
            INTEGER plane = (INTEGER)((place + tap * w->dilation[0]) * area);
            npy_intp made = group * w->windows + z * windows;
            REAL *out = (REAL *)w->to + made, *values = is_joined(w) ? out : best;
            int begins = 1;
            for (npy_intp a = tap; a < end; a++) {
                npy_intp read = place + a * w->dilation[0];
                for (npy_intp b = 0; b < w->kernel[1]; b++, begins = 0) {
                    npy_intp number = (a - tap) * w->dilation[0] * area +
                                      b * w->dilation[1] * w->sizes[2];
                    F(take_line_of_taps)(w, parts + read * w->plane, b, number, first, values,
                                         w->positions == NULL ? NULL : chosen, begins);
                }
            }
            if (values != out) {
                F(join_lines)(w, best, out, 0);
            }
            for (npy_intp l = 0; w->positions != NULL && l < w->out[1]; l++) {
                npy_int64 *restrict positions = w->positions + made + l * w->out[2];
                const INTEGER *restrict taps = chosen + l * w->columns.length;
                const INTEGER *restrict starts = corners + l * w->out[2];
#pragma omp simd
                for (npy_intp i = 0; i < w->out[2]; i++) {
                    positions[i] = taps[i] + starts[i] + plane;
                }
            }
        }
    }
    PyMem_RawFree(parts);
}

/* `failed` becomes 2 if a position is none. */
static void F(max_pool_backward)(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Sliding *w = given;
    for (Py_ssize_t plane = from; plane < to; plane++) {
        const REAL *restrict grad = (const REAL *)w->from + plane * w->windows;
        const npy_int64 *restrict positions = w->positions + plane * w->windows;
        REAL *restrict made = (REAL *)w->to + plane * w->area;
        memset(made, 0, (size_t)w->area * sizeof(REAL));
        for (npy_intp i = 0; i < w->windows; i++) {
            npy_uint64 position = (npy_uint64)positions[i];
            if (position >= (npy_uint64)w->area) {
                *w->failed = 2;
                return;
            }
            made[position] += grad[i];
        }
    }
}

/* What each window of a plane divides by, but for the first dimension. */
static void F(count_elements)(const Sliding *w, REAL *counts)
{
    for (npy_intp i = 0; i < w->reach; i++) {
        npy_intp y = i / w->columns.length, x = i % w->columns.length;
        int inside = y < w->out[1] && x < w->out[2] && isnan(w->divisor);
        counts[i] = inside ? (REAL)(counted(w, 1, y) * counted(w, 2, x)) : (REAL)1;
    }
}

static void F(divide)(const Sliding *w, npy_intp z, const REAL *restrict counts, REAL *restrict x)
{
    REAL divisor = isnan(w->divisor) ? (REAL)counted(w, 0, z) : (REAL)w->divisor;
    if (!isnan(w->divisor)) {
#pragma omp simd
        for (npy_intp i = 0; i < w->reach; i++) {
            x[i] /= divisor;
        }
        return;
    }
#pragma omp simd
    for (npy_intp i = 0; i < w->reach; i++) {
        x[i] /= counts[i] * divisor;
    }
}

static inline void F(add_each)(const REAL *x0, const REAL *x1, const REAL *x2, int count,
                               REAL *restrict total, npy_intp n, int begins)
{
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        REAL sum = begins ? x0[i] : total[i] + x0[i];
        sum = count > 1 ? sum + x1[i] : sum;
        total[i] = count > 2 ? sum + x2[i] : sum;
    }
}

/* Adds up to three arrays to a total, which is not read if this `begins`. */
static void F(add_up)(const REAL *const *x, npy_intp count, REAL *total, npy_intp n, int begins)
{
    if (count == 1) {
        F(add_each)(x[0], x[0], x[0], 1, total, n, begins);
    } else if (count == 2 && begins) {
        F(add_each)(x[0], x[1], x[0], 2, total, n, 1);
    } else if (count == 2) {
        F(add_each)(x[0], x[1], x[0], 2, total, n, 0);
    } else if (begins) {
        F(add_each)(x[0], x[1], x[2], 3, total, n, 1);
    } else {
        F(add_each)(x[0], x[1], x[2], 3, total, n, 0);
    }
}

static inline void F(add_to)(const REAL *restrict x, REAL *restrict total, npy_intp n)
{
#pragma omp simd
    for (npy_intp i = 0; i < n; i++) {
        total[i] += x[i];
    }
}

/* What all taps of a column read, of one part of a line. */
static void F(add_lines)(const Sliding *w, const REAL *plane, npy_intp part, REAL *total,
                         npy_intp n, int begins)
{
    npy_intp tap = w->columns.first[part];
    for (npy_intp b = 0; b < w->kernel[1]; b += 3) {
        npy_intp taps = w->kernel[1] - b < 3 ? w->kernel[1] - b : 3;
        const REAL *x[3];
        for (npy_intp k = 0; k < taps; k++) {
            x[k] = plane + read_by(w, b + k, tap) - w->columns.shift[tap];
        }
        F(add_up)(x, taps, total, n, begins && b == 0);
    }
}

/* The means of windows: lines are added up first, then columns. */
static void F(avg_pool)(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Sliding *w = given;
    if (is_whole(w)) {
        REAL *out = w->to, divisor = (REAL)w->divisor;
        for (Py_ssize_t group = from; group < to; group++) {
            out[group] = (REAL)F(sum)((const REAL *)w->from + group * w->area, w->area) / divisor;
        }
        return;
    }
    npy_intp n = w->reach, row = n + w->columns.length, sums_size = w->columns.parts * row;
    REAL *parts = F(memory)(w, sums_size + 2 * n, (REAL)0);
    if (parts == NULL) {
        return;
    }
    REAL *sums = parts + w->sizes[0] * w->plane, *total = sums + sums_size, *counts = total + n;
    F(count_elements)(w, counts);
    for (Py_ssize_t group = from; group < to; group++) {
        REAL *given_planes = (REAL *)w->from + group * w->area;
        for (npy_intp z = 0; z < w->sizes[0]; z++) {
            REAL *one = given_planes + z * w->sizes[1] * w->sizes[2];
            F(take_apart)(w, one, parts + z * w->plane, 0);
        }
        for (npy_intp z = 0; z < w->out[0]; z++) {
            npy_intp first, end = taps_inside(w, 0, z, &first);
            npy_intp place = z * w->stride[0] - w->padding[0];
            REAL *out = (REAL *)w->to + group * w->windows + z * w->out[1] * w->out[2];
            REAL *means = is_joined(w) ? out : total;
            /* One tap of a column needs no sum. */
            int alone = end - first == 1 && w->kernel[1] == 1;
            for (npy_intp a = first; a < end && !alone; a++) {
                const REAL *plane = parts + (place + a) * w->plane;
                for (npy_intp q = 0; q < w->columns.parts; q++) {
                    F(add_lines)(w, plane, q, sums + q * row, row, a == first);
                }
            }
            for (npy_intp c = 0; c < w->kernel[2]; c += 3) {
                npy_intp taps = w->kernel[2] - c < 3 ? w->kernel[2] - c : 3;
                const REAL *x[3];
                for (npy_intp k = 0; k < taps; k++) {
                    x[k] = alone ? parts + (place + first) * w->plane + read_by(w, 0, c + k)
                                 : sums + w->columns.part[c + k] * row + w->columns.shift[c + k];
                }
                F(add_up)(x, taps, means, n, c == 0);
            }
            F(divide)(w, z, counts, means);
            if (means != out) {
                F(join_lines)(w, total, out, 0);
            }
        }
    }
    PyMem_RawFree(parts);
}

/* The same backwards: shares of windows are spread along columns, and those along lines. */
static void F(avg_pool_backward)(const void *given, Py_ssize_t from, Py_ssize_t to)
{
    const Sliding *w = given;
    if (is_whole(w)) {
        for (Py_ssize_t group = from; group < to; group++) {
            REAL share = ((const REAL *)w->from)[group] / (REAL)w->divisor;
            REAL *restrict made = (REAL *)w->to + group * w->area;
#pragma omp simd
            for (npy_intp i = 0; i < w->area; i++) {
                made[i] = share;
            }
        }
        return;
    }
    npy_intp n = w->reach, row = n + w->columns.length, spread_size = w->columns.parts * row;
    REAL *parts = F(memory)(w, spread_size + 2 * n, (REAL)0);
    if (parts == NULL) {
        return;
    }
    REAL *spread = parts + w->sizes[0] * w->plane, *share = spread + spread_size;
    REAL *counts = share + n;
    F(count_elements)(w, counts);
    memset(share, 0, (size_t)n * sizeof(REAL));
    int gaps = w->lines.parts < w->stride[1] || w->columns.parts < w->stride[2] ||
               w->lines.length * w->stride[1] < w->sizes[1] + w->padding[1] ||
               w->columns.length * w->stride[2] < w->sizes[2] + w->padding[2];
    for (Py_ssize_t group = from; group < to; group++) {
        memset(parts, 0, (size_t)(w->sizes[0] * w->plane) * sizeof(REAL));
        for (npy_intp z = 0; z < w->out[0]; z++) {
            npy_intp first, end = taps_inside(w, 0, z, &first);
            npy_intp place = z * w->stride[0] - w->padding[0];
            npy_intp taken = group * w->windows + z * w->out[1] * w->out[2];
            F(join_lines)(w, (const REAL *)w->from + taken, share, 1);
            F(divide)(w, z, counts, share);
            memset(spread, 0, (size_t)spread_size * sizeof(REAL));
            for (npy_intp c = 0; c < w->kernel[2]; c++) {
                F(add_to)(share, spread + w->columns.part[c] * row + w->columns.shift[c], n);
            }
            for (npy_intp a = first; a < end; a++) {
                for (npy_intp b = 0; b < w->kernel[1]; b++) {
                    for (npy_intp q = 0; q < w->columns.parts; q++) {
                        npy_intp tap = w->columns.first[q];
                        REAL *made = parts + (place + a) * w->plane + read_by(w, b, tap);
                        F(add_to)(spread + q * row, made - w->columns.shift[tap], row);
                    }
                }
            }
        }
        REAL *made = (REAL *)w->to + group * w->area;
        if (gaps) {
            memset(made, 0, (size_t)w->area * sizeof(REAL));
        }
        for (npy_intp z = 0; z < w->sizes[0]; z++) {
            F(take_apart)(w, made + z * w->sizes[1] * w->sizes[2], parts + z * w->plane, 1);
        }
    }
    PyMem_RawFree(parts);
}
