/* Convolution by tiles: see tiles.h. */

#ifndef PLUGRAD_WINOGRAD_H
#define PLUGRAD_WINOGRAD_H

#include "tiles.h"

#if defined(__GNUC__)

/* Whether the range of all filters, which are contiguous, is wide. */
static int are_filters_wide(const Tiled *w)
{
    Range range = {{0}, {0}};
    npy_intp count = 9 * w->filters * w->channels, whole = count / ACROSS * ACROSS;
    for (npy_intp i = 0; i < whole; i += ACROSS) {
        extend(&range, READ(w->filter + i));
    }
    Tiles8 rest = {0};
    memcpy(&rest, w->filter + whole, (size_t)(count - whole) * sizeof(float));
    extend(&range, rest);
    return is_wide(&range, count);
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
            const float *taps = w->filter + last;
            taps += (first + o) * w->filter_step + c * w->channel_step;
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

/* The convolution of blocks of lines. */
static void convolve(const void *work, Py_ssize_t from, Py_ssize_t to)
{
    const Tiled *w = work;
    npy_intp row = w->row, tile_step = step_of(w, w->channels);
    npy_intp product_step = step_of(w, w->filters);
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

#endif
#endif
