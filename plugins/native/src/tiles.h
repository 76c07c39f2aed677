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

#ifndef PLUGRAD_TILES_H
#define PLUGRAD_TILES_H

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

/* Loops over vectors that must be unrolled before the compiler chooses registers. */
#define UNROLLED _Pragma("GCC unroll 8")

/* Has a vector in a register: the compiler would read it from memory for each use. */
#if defined(__AVX__)
#define HELD(vector) __asm__("" : "+x"(vector))
#else
#define HELD(vector)
#endif

/* What is multiplied at a time: filters by tiles; for the gradient of filters, filters by channels. */
#define FILTERS 6
#define SIDE (2 * ACROSS)
#define LINE 16  /* of the cache */
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
    float *sums;       /* for the gradients of filters: points of each group of blocks */
    double *bias_sums; /* and of the bias */
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

#endif
#endif
