/* The gradient of filters by tiles: see tiles.h. */

#ifndef PLUGRAD_WINOGRAD_GRADIENT_H
#define PLUGRAD_WINOGRAD_GRADIENT_H

#include "tiles.h"

#if defined(__GNUC__)

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

/* Adds the sums of eight vectors to eight numbers, by halves. */
static inline void add_sums(const Tiles8 *of, float *sums)
{
#define HALVES(a, b)                                                                               \
    (CHOSEN(a, b, 0, 8, 1, 9, 4, 12, 5, 13) + CHOSEN(a, b, 2, 10, 3, 11, 6, 14, 7, 15))
#define QUARTERS(a, b)                                                                             \
    (CHOSEN(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + CHOSEN(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
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
            const float *points = sums + c / FEW_CHANNELS * ACROSS;
            points += o * FEW_CHANNELS + c % FEW_CHANNELS;
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

#endif
#endif
