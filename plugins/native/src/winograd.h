/* Convolution with filters of 3 x 3 side by side, in float32, with 16 products for 4 results instead
   of 36: Winograd's F(2 x 2, 3 x 3), as Lavin and Gray describe it ("Fast Algorithms for
   Convolutional Neural Networks", 2016, https://arxiv.org/abs/1509.09308).

   The result is divided into tiles of 2 x 2, which read 4 x 4 places of the image. Tiles and filters
   are transformed to 4 x 4 points each. At every point, the channels of a tile are multiplied by a
   matrix; and back:

       tiles (points, channels, tiles), filters (points, filters, channels)
       products (points, filters, tiles) = filters @ tiles

   Tiles of one line lie side by side. A block of lines is computed at a time, from as many images as
   it takes, so that it stays in the cache. The gradient of the image is a convolution, too: with
   filters that are turned around. That of the filters is what is adjoint to the steps above. */

#ifndef PLUGRAD_WINOGRAD_H
#define PLUGRAD_WINOGRAD_H

#include "arrays.h"

#if defined(__GNUC__)

#define POINTS 16
/* Vectors of 256 bits: lines of tiles are mostly short, and none is aligned to longer ones. */
typedef float Tiles8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef npy_int32 Numbers8 __attribute__((vector_size(32)));
#define ACROSS 8
#define AT(place) (*(Tiles8 *)(place))
#define READ(place) (*(const Tiles8 *)(place))
#if defined(__clang__) || __GNUC__ >= 12
#define CHOSEN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOSEN(a, b, ...) __builtin_shuffle(a, b, (Numbers8){__VA_ARGS__})
#endif
#define EVEN(a, b) CHOSEN(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) CHOSEN(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
/* What is multiplied at a time: filters by tiles; for the gradient of filters, filters by channels. */
#define FILTERS 6
#define SIDE (2 * ACROSS)
#define LINE 16   /* of the cache */
#define LINES 18 /* of tiles, with their padding, in the memory of transformations */
#define FEW_FILTERS 4
#define FEW_CHANNELS 2
/* Bytes of a block with the products; for the gradient of filters the sums over tiles are longer. */
#define BLOCK_BYTES ((npy_intp)1 << 19)
#define LONG_BLOCK_BYTES ((npy_intp)1 << 20)

typedef struct {
    npy_intp images, channels, filters;
    npy_intp height, width, above, before; /* of an image, and its padding on two sides */
    npy_intp out_height, out_width;
    npy_intp lines, tiles; /* lines of tiles in an image, and tiles in a line */
    npy_intp block;        /* lines that are computed at a time */
    npy_intp panels;       /* of filters */
    npy_intp row;          /* elements from one channel or filter of a block to the next */
    npy_intp span;         /* elements of a line in memory, with the padding */
    npy_intp filter_step, channel_step; /* in the filters that are given */
    int turned;                         /* whether these are read from their last tap on */
    const float *image, *filter, *bias, *grad;
    float *points; /* of the filters: panels of up to FILTERS, in each of which channels come first */
    float *out;
    float *sums;        /* for the gradients of filters: points of each group of blocks */
    double *bias_sums;  /* and of the bias */
    npy_intp groups;
    int *failed; /* 1: no memory; 2: a result is inf or nan, or the range is wide */
} Tiled;

/* Distances from 0: the largest ones, and their sum. */
typedef struct {
    Tiles8 largest, total;
} Range;

/* Rounding errors of a tile are relative to its largest element, where those of a sum of products are
   relative to what is added up. So what has an element so many times as large as the mean is left
   to others: what lies beside it may have to be exact, such as the zeros beside a single one. */
#define WIDEST 256

static inline void extend(Range *range, Tiles8 given)
{
    Tiles8 distance = (Tiles8)((Numbers8)given & 0x7fffffff);
    Numbers8 larger = distance > range->largest;
    range->largest = (Tiles8)(((Numbers8)distance & larger) | ((Numbers8)range->largest & ~larger));
    range->total += distance;
}

static int is_wide(const Range *range, npy_intp count)
{
    float largest = 0;
    double total = 0;
    for (int k = 0; k < ACROSS; k++) {
        largest = range->largest[k] > largest ? range->largest[k] : largest;
        total += (double)range->total[k];
    }
    return (double)largest * (double)count > WIDEST * total;
}

static inline npy_intp rounded(npy_intp size, npy_intp unit)
{
    return (size + unit - 1) / unit * unit;
}

/* Divides the result into tiles, and these into blocks of about so many bytes. */
static void plan_tiles(Tiled *w, npy_intp bytes)
{
    w->lines = (w->out_height + 1) / 2;
    w->tiles = (w->out_width + 1) / 2;
    npy_intp side = bytes / (POINTS * (npy_intp)sizeof(float) * (w->channels + w->filters));
    w->block = (side < SIDE ? SIDE : side) / w->tiles;
    w->block = w->block < 1 ? 1 : w->block;
    w->panels = (w->filters + FILTERS - 1) / FILTERS;
    w->block = w->block < w->images * w->lines ? w->block : w->images * w->lines;
    w->row = rounded(w->block * w->tiles, SIDE) + ACROSS;
    w->span = rounded(2 * w->tiles + 2, ACROSS) + 4 * ACROSS;
}

/* Elements from one point to the next, of so many channels or filters. The points of a tile are in
   different places of the cache. */
static npy_intp step_of(const Tiled *w, npy_intp count)
{
    return rounded(count * w->row, 2 * LINE) + LINE;
}

static npy_intp blocks_of(const Tiled *w)
{
    return (w->images * w->lines + w->block - 1) / w->block;
}

/* A line between its padding, transformed: four numbers for each tile. */
static inline void transform_line(const Tiled *w, const float *padded, float *made, Range *range)
{
    for (npy_intp j = 0; j < w->tiles; j += ACROSS) {
        const float *places = padded + 2 * j;
        Tiles8 left = READ(places), right = READ(places + ACROSS);
        extend(range, left);
        extend(range, right);
        Tiles8 first = EVEN(left, right), second = ODD(left, right);
        left = READ(places + 2);
        right = READ(places + 2 + ACROSS);
        Tiles8 third = EVEN(left, right), fourth = ODD(left, right);
        AT(made + j) = first - third;
        AT(made + w->span + j) = second + third;
        AT(made + 2 * w->span + j) = third - second;
        AT(made + 3 * w->span + j) = second - fourth;
    }
}

/* The points of the tiles of a plane, from one line of tiles to before another. What is written
   behind a line, the next one overwrites. `memory` has LINES lines. */
static void transform_tiles(const Tiled *w, const float *plane, npy_intp from, npy_intp to,
                            npy_intp step, float *memory, float *points, Range *range)
{
    npy_intp span = w->span;
    float *padded = memory + 16 * span, *before = memory, *after = memory + 8 * span;
    memset(padded, 0, 2 * (size_t)span * sizeof(float));
    /* A tile reads two lines of the image that the one above it reads, too, and two others. */
    for (npy_intp line = from; line <= to; line++) {
        for (int r = 0; r < 2; r++) {
            npy_intp place = 2 * line - w->above + r;
            if (place >= 0 && place < w->height) {
                memcpy(padded + r * span + w->before, plane + place * w->width,
                       (size_t)w->width * sizeof(float));
            } else {
                memset(padded + r * span, 0, (size_t)span * sizeof(float));
            }
        }
        transform_line(w, padded, after, range);
        transform_line(w, padded + span, after + 4 * span, range);
        for (npy_intp j = 0; line > from && j < w->tiles; j += ACROSS) {
            for (int column = 0; column < 4; column++) {
                npy_intp place = column * span + j;
                Tiles8 first = READ(before + place), second = READ(before + 4 * span + place);
                Tiles8 third = READ(after + place), fourth = READ(after + 4 * span + place);
                float *target = points + column * step + j;
                AT(target) = first - third;
                AT(target + 4 * step) = second + third;
                AT(target + 8 * step) = third - second;
                AT(target + 12 * step) = second - fourth;
            }
        }
        points += line > from ? w->tiles : 0;
        float *other = before;
        before = after;
        after = other;
    }
}

/* The points of a gradient, as `transform_tiles`: a tile is 2 x 2 places of it. */
static void transform_grad(const Tiled *w, const float *plane, npy_intp from, npy_intp to,
                           npy_intp step, float *memory, float *points, Range *range)
{
    npy_intp span = w->span;
    memset(memory, 0, 2 * (size_t)span * sizeof(float));
    for (npy_intp line = from; line < to; line++, points += w->tiles) {
        size_t size = (size_t)w->out_width * sizeof(float);
        memcpy(memory, plane + 2 * line * w->out_width, size);
        if (2 * line + 1 < w->out_height) {
            memcpy(memory + span, plane + (2 * line + 1) * w->out_width, size);
        } else {
            memset(memory + span, 0, size);
        }
        for (npy_intp j = 0; j < w->tiles; j += ACROSS) {
            Tiles8 made[2][4];
            for (int r = 0; r < 2; r++) {
                const float *places = memory + r * span + 2 * j;
                Tiles8 left = READ(places), right = READ(places + ACROSS);
                extend(range, left);
                extend(range, right);
                Tiles8 even = EVEN(left, right), odd = ODD(left, right);
                made[r][0] = even;
                made[r][1] = even + odd;
                made[r][2] = even - odd;
                made[r][3] = -odd;
            }
            for (int column = 0; column < 4; column++) {
                float *target = points + column * step + j;
                AT(target) = made[0][column];
                AT(target + 4 * step) = made[0][column] + made[1][column];
                AT(target + 8 * step) = made[0][column] - made[1][column];
                AT(target + 12 * step) = -made[1][column];
            }
        }
    }
}

typedef void (*Transform)(const Tiled *w, const float *plane, npy_intp from, npy_intp to,
                          npy_intp step, float *memory, float *points, Range *range);

/* Transforms the planes of a block of lines, which may be of several images: one row for each of
   `count` planes of an image, filled up with zeros. Whether their range is narrow enough. */
static int transform_block(const Tiled *w, Transform transform, const float *planes,
                            npy_intp count, npy_intp size, npy_intp from, npy_intp to,
                            npy_intp step, float *memory, float *points)
{
    npy_intp used = (to - from) * w->tiles, rest = w->row - used;
    Range range = {{0}, {0}};
    for (npy_intp plane = 0; plane < count; plane++) {
        float *target = points + plane * w->row;
        for (npy_intp line = from, next; line < to; line = next) {
            npy_intp image = line / w->lines, end = (image + 1) * w->lines;
            next = end < to ? end : to;
            transform(w, planes + (image * count + plane) * size, line - image * w->lines,
                      next - image * w->lines, step, memory, target, &range);
            target += (next - line) * w->tiles;
        }
        for (int point = 0; point < POINTS; point++) {
            memset(points + point * step + plane * w->row + used, 0, (size_t)rest * sizeof(float));
        }
    }
    return !is_wide(&range, 4 * used * count);
}

/* The first filter of a panel. They have as many as each other, or one more. */
static npy_intp first_of(const Tiled *w, npy_intp panel)
{
    return panel * w->filters / w->panels;
}

/* The points of filters in panels, from one panel to before another. */
static void transform_filters(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    const Tiled *w = work;
    npy_intp step = w->filters * w->channels;
    int last = w->turned ? 8 : 0, sign = w->turned ? -1 : 1;
    for (npy_intp panel = from; panel < to; panel++) {
        npy_intp first = first_of(w, panel), rows = first_of(w, panel + 1) - first;
        for (npy_intp i = 0; i < rows * w->channels; i++) {
            npy_intp o = i % rows, c = i / rows;
            const float *taps = w->filter + (first + o) * w->filter_step + c * w->channel_step + last;
            float *points = w->points + first * w->channels + i;
            double lines[3][4];
            for (int r = 0; r < 3; r++, taps += 3 * sign) {
                double outer = (double)taps[0] + (double)taps[2 * sign], inner = taps[sign];
                lines[r][0] = taps[0];
                lines[r][1] = (outer + inner) / 2;
                lines[r][2] = (outer - inner) / 2;
                lines[r][3] = taps[2 * sign];
            }
            for (int column = 0; column < 4; column++, points += step) {
                double outer = lines[0][column] + lines[2][column], inner = lines[1][column];
                points[0] = (float)lines[0][column];
                points[4 * step] = (float)((outer + inner) / 2);
                points[8 * step] = (float)((outer - inner) / 2);
                points[12 * step] = (float)lines[2][column];
            }
        }
    }
}

/* Loops over vectors that must be unrolled before the compiler chooses registers. */
#define UNROLLED _Pragma("GCC unroll 8")

/* Has a vector in a register: the compiler would read it from memory for each use. */
#if defined(__AVX__)
#define HELD(vector) __asm__("" : "+x"(vector))
#else
#define HELD(vector)
#endif

/* `rows` filters by SIDE tiles. */
#define PRODUCT(rows)                                                                              \
    {                                                                                              \
        Tiles8 sums[rows][2], low = READ(tiles), high = READ(tiles + ACROSS);                      \
        UNROLLED for (int r = 0; r < rows; r++)                                                    \
        {                                                                                          \
            sums[r][0] = filters[r] * low;                                                         \
            sums[r][1] = filters[r] * high;                                                        \
        }                                                                                          \
        for (npy_intp c = 1; c < channels; c++) {                                                  \
            low = READ(tiles + c * row);                                                           \
            high = READ(tiles + c * row + ACROSS);                                                 \
            UNROLLED for (int r = 0; r < rows; r++)                                                \
            {                                                                                      \
                sums[r][0] += filters[c * rows + r] * low;                                         \
                sums[r][1] += filters[c * rows + r] * high;                                        \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int r = 0; r < rows; r++)                                                    \
        {                                                                                          \
            AT(made + r * row) = sums[r][0];                                                       \
            AT(made + r * row + ACROSS) = sums[r][1];                                              \
        }                                                                                          \
        break;                                                                                     \
    }

static inline void multiply_points(const float *filters, npy_intp rows, const float *tiles,
                                   npy_intp channels, npy_intp row, float *made)
{
    switch (rows) {
    case 1:
        PRODUCT(1)
    case 2:
        PRODUCT(2)
    case 3:
        PRODUCT(3)
    case 4:
        PRODUCT(4)
    case 5:
        PRODUCT(5)
    default:
        PRODUCT(FILTERS)
    }
}

#undef PRODUCT

/* The lines of a plane of the result, from their points. `memory` has 4 lines. Whether a result is
   inf or nan, or so large that the sum of a tile is. */
static int transform_back(const Tiled *w, const float *points, npy_intp step, npy_intp from,
                          npy_intp to, float bias, float *memory, float *plane)
{
    npy_intp span = w->span, pairs = w->out_width / 2;
    Tiles8 failed = {0};
    for (npy_intp line = from; line < to; line++, points += w->tiles) {
        for (npy_intp j = 0; j < w->tiles; j += ACROSS) {
            Tiles8 upper[4], lower[4];
            for (int column = 0; column < 4; column++) {
                const float *given = points + column * step + j;
                Tiles8 second = READ(given + 4 * step), third = READ(given + 8 * step);
                upper[column] = READ(given) + second + third;
                lower[column] = second - third - READ(given + 12 * step);
            }
            Tiles8 first = upper[0] + upper[1] + upper[2] + bias;
            Tiles8 second = upper[1] - upper[2] - upper[3] + bias;
            Tiles8 third = lower[0] + lower[1] + lower[2] + bias;
            Tiles8 fourth = lower[1] - lower[2] - lower[3] + bias;
            Tiles8 sum = (first + second) + (third + fourth);
            failed += sum - sum; /* 0 or nan */
            AT(memory + j) = first;
            AT(memory + span + j) = second;
            AT(memory + 2 * span + j) = third;
            AT(memory + 3 * span + j) = fourth;
        }
        for (npy_intp r = 0; r < 2 && 2 * line + r < w->out_height; r++) {
            float *restrict target = plane + (2 * line + r) * w->out_width;
            const float *restrict even = memory + 2 * r * span, *restrict odd = even + span;
            for (npy_intp j = 0; j < pairs; j++) {
                target[2 * j] = even[j];
                target[2 * j + 1] = odd[j];
            }
            if (w->out_width % 2) {
                target[2 * pairs] = even[pairs];
            }
        }
    }
    int found = 0;
    for (int k = 0; k < ACROSS; k++) {
        found |= failed[k] != 0;
    }
    return found;
}

/* Memory for one block, or NULL: `*lines`, and points of tiles and of what has as many rows as there
   are `filters`, which begin with lines of the cache. */
static void *block_memory(const Tiled *w, npy_intp channels, npy_intp filters, float **lines,
                          float **tiles)
{
    npy_intp points = POINTS * (step_of(w, channels) + step_of(w, filters));
    void *memory = PyMem_RawMalloc((size_t)(LINES * w->span + points + SIDE + LINE) * sizeof(float));
    if (memory == NULL) {
        *w->failed = 1;
        return NULL;
    }
    size_t bytes = LINE * sizeof(float), over = (uintptr_t)memory % bytes;
    *tiles = (float *)((char *)memory + (bytes - over) % bytes);
    *lines = *tiles + points + SIDE;
    return memory;
}

/* The convolution of blocks of lines. */
static void convolve(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    const Tiled *w = work;
    npy_intp row = w->row, tile_step = step_of(w, w->channels), product_step = step_of(w, w->filters);
    float *lines, *tiles;
    void *memory = block_memory(w, w->channels, w->filters, &lines, &tiles);
    if (memory == NULL) {
        return;
    }
    float *products = tiles + POINTS * tile_step;
    /* Vectors at the end of a row read what is behind it. */
    for (npy_intp i = 0; i < POINTS * w->filters; i++) {
        float *end = products + i / w->filters * product_step + (i % w->filters + 1) * row;
        memset(end - ACROSS, 0, ACROSS * sizeof(float));
    }
    npy_intp all = w->images * w->lines, end = to * w->block < all ? to * w->block : all, next;
    for (npy_intp line = from * w->block; line < end; line = next) {
        next = line + w->block < end ? line + w->block : end;
        if (!transform_block(w, transform_tiles, w->image, w->channels, w->height * w->width,
                             line, next, tile_step, lines, tiles)) {
            *w->failed = 2;
        }
        if (*w->failed) {
            break;
        }
        npy_intp used = (next - line) * w->tiles;
        for (npy_intp point = 0; point < POINTS; point++) {
            const float *filters = w->points + point * w->filters * w->channels;
            for (npy_intp tile = 0; tile < used; tile += SIDE) {
                for (npy_intp panel = 0, o = 0, after; panel < w->panels; panel++, o = after) {
                    after = first_of(w, panel + 1);
                    multiply_points(filters + o * w->channels, after - o,
                                    tiles + point * tile_step + tile, w->channels, row,
                                    products + point * product_step + o * row + tile);
                }
            }
        }
        for (npy_intp o = 0; o < w->filters; o++) {
            const float *points = products + o * row;
            for (npy_intp one = line, after; one < next; one = after) {
                npy_intp image = one / w->lines, last = (image + 1) * w->lines;
                after = last < next ? last : next;
                float *plane = w->out + (image * w->filters + o) * w->out_height * w->out_width;
                if (transform_back(w, points, product_step, one - image * w->lines,
                                   after - image * w->lines, w->bias == NULL ? 0 : w->bias[o],
                                   lines, plane)) {
                    *w->failed = 2;
                }
                points += (after - one) * w->tiles;
            }
        }
    }
    PyMem_RawFree(memory);
}

/* Adds the sums of eight vectors to eight numbers, by halves. */
static inline void add_sums(const Tiles8 *of, float *sums)
{
#define HALVES(a, b) CHOSEN(a, b, 0, 8, 1, 9, 4, 12, 5, 13) + CHOSEN(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define QUARTERS(a, b) CHOSEN(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + CHOSEN(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
    Tiles8 a = HALVES(of[0], of[1]), b = HALVES(of[2], of[3]);
    Tiles8 c = HALVES(of[4], of[5]), d = HALVES(of[6], of[7]);
    a = QUARTERS(a, b);
    c = QUARTERS(c, d);
    AT(sums) += CHOSEN(a, c, 0, 1, 2, 3, 8, 9, 10, 11) + CHOSEN(a, c, 4, 5, 6, 7, 12, 13, 14, 15);
#undef HALVES
#undef QUARTERS
}

/* Adds the products of FEW_FILTERS rows by FEW_CHANNELS rows, summed over their elements. */
static inline void add_products(const float *grads, const float *tiles, npy_intp row, npy_intp count,
                                float *sums)
{
    Tiles8 of[FEW_FILTERS * FEW_CHANNELS], first = READ(tiles), second = READ(tiles + row);
    UNROLLED for (int r = 0; r < FEW_FILTERS; r++)
    {
        of[2 * r] = READ(grads + r * row) * first;
        of[2 * r + 1] = READ(grads + r * row) * second;
    }
    for (npy_intp j = ACROSS; j < count; j += ACROSS) {
        first = READ(tiles + j);
        second = READ(tiles + row + j);
        UNROLLED for (int r = 0; r < FEW_FILTERS; r++)
        {
            Tiles8 grad = READ(grads + r * row + j);
            HELD(grad);
            of[2 * r] += grad * first;
            of[2 * r + 1] += grad * second;
        }
    }
    add_sums(of, sums);
}

/* The sums of groups of blocks for the gradient of filters: for each point, of FEW_FILTERS filters
   and FEW_CHANNELS channels after the other. */
static void correlate(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    const Tiled *w = work;
    npy_intp channels = rounded(w->channels, FEW_CHANNELS);
    npy_intp filters = rounded(w->filters, FEW_FILTERS);
    npy_intp row = w->row, tile_step = step_of(w, channels), grad_step = step_of(w, filters);
    npy_intp all = w->images * w->lines, blocks = blocks_of(w);
    float *lines, *tiles;
    void *memory = block_memory(w, channels, filters, &lines, &tiles);
    if (memory == NULL) {
        return;
    }
    float *grads = tiles + POINTS * tile_step;
    memset(tiles, 0, (size_t)(POINTS * (tile_step + grad_step)) * sizeof(float));
    for (npy_intp group = from; group < to; group++) {
        float *group_sums = w->sums + group * POINTS * filters * channels;
        double *bias_sums = w->bias_sums + group * w->filters;
        memset(group_sums, 0, (size_t)(POINTS * filters * channels) * sizeof(float));
        memset(bias_sums, 0, (size_t)w->filters * sizeof(double));
        npy_intp end = (group + 1) * blocks / w->groups * w->block, next;
        end = end < all ? end : all;
        for (npy_intp line = group * blocks / w->groups * w->block; line < end; line = next) {
            next = line + w->block < end ? line + w->block : end;
            npy_intp used = (next - line) * w->tiles;
            if (!transform_block(w, transform_tiles, w->image, w->channels, w->height * w->width,
                                 line, next, tile_step, lines, tiles) ||
                !transform_block(w, transform_grad, w->grad, w->filters,
                                 w->out_height * w->out_width, line, next, grad_step, lines,
                                 grads)) {
                *w->failed = 2;
            }
            if (*w->failed) {
                break;
            }
            float *sums = group_sums;
            for (npy_intp point = 0; point < POINTS; point++) {
                for (npy_intp o = 0; o < filters; o += FEW_FILTERS) {
                    for (npy_intp c = 0; c < channels; c += FEW_CHANNELS, sums += ACROSS) {
                        add_products(grads + point * grad_step + o * row,
                                     tiles + point * tile_step + c * row, row, used, sums);
                    }
                }
            }
            /* Point 5 is the sum of a tile. */
            for (npy_intp o = 0; o < w->filters; o++) {
                const float *given = grads + 5 * grad_step + o * row;
                Tiles8 total = {0};
                for (npy_intp j = 0; j < used; j += ACROSS) {
                    total += READ(given + j);
                }
                for (int k = 0; k < ACROSS; k++) {
                    bias_sums[o] += (double)total[k];
                }
            }
        }
    }
    PyMem_RawFree(memory);
}

/* The gradients of FEW_FILTERS filters at a time, from the sums of all groups. */
static void transform_sums(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    const Tiled *w = work;
    npy_intp channels = rounded(w->channels, FEW_CHANNELS), size = FEW_FILTERS * channels;
    npy_intp step = rounded(w->filters, FEW_FILTERS) * channels;
    for (npy_intp panel = from; panel < to; panel++) {
        float *restrict sums = w->sums + panel * size;
        for (npy_intp i = POINTS; i < w->groups * POINTS; i++) {
            const float *restrict others = sums + i * step;
            for (npy_intp j = 0; j < size; j++) {
                sums[i % POINTS * step + j] += others[j];
            }
        }
        npy_intp rest = w->filters - panel * FEW_FILTERS;
        npy_intp filters = rest < FEW_FILTERS ? rest : FEW_FILTERS;
        for (npy_intp i = 0; i < filters * w->channels; i++) {
            npy_intp o = i / w->channels, c = i % w->channels;
            const float *points = sums + c / FEW_CHANNELS * ACROSS + o * FEW_CHANNELS + c % FEW_CHANNELS;
            float lines[3][4];
            for (int k = 0; k < 4; k++, points += step) {
                float second = points[4 * step] / 2, third = points[8 * step] / 2;
                lines[0][k] = points[0] + second + third;
                lines[1][k] = second - third;
                lines[2][k] = second + third + points[12 * step];
            }
            float *taps = w->out + (panel * FEW_FILTERS + o) * w->filter_step + c * w->channel_step;
            for (int r = 0; r < 3; r++) {
                float second = lines[r][1] / 2, third = lines[r][2] / 2;
                taps[3 * r] = lines[r][0] + second + third;
                taps[3 * r + 1] = second - third;
                taps[3 * r + 2] = second + third + lines[r][3];
            }
            float sum = 0;
            for (int k = 0; k < 9; k++) {
                sum += taps[k];
            }
            *w->failed = isfinite(sum) ? *w->failed : 2;
        }
    }
}

#undef AT
#undef READ
#undef CHOSEN
#undef EVEN
#undef ODD

#endif
#endif
