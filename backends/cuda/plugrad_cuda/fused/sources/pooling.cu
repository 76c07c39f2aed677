// max_pool2d and avg_pool2d over (planes, height, width), and their gradients.
//
// I is int where all positions fit into 31 bits, else long long: divisions of the latter are slow.
// Gradients are gathered: a thread looks through the windows that cover its element, so that
// nothing is added atomically and every run gives the same sums.
#include "common.cuh"

// The first window that reaches position `at` of the padded dimension, and one past the last.
template <class I> __device__ inline I first_window(I at, I reach, I step) {
    return at < reach ? 0 : (at - reach) / step + 1;
}
template <class I> __device__ inline I last_window(I at, I step, I out) {
    I end = at / step + 1;
    return end < out ? end : out;
}

template <class T, class I>
__global__ void max_pool(const T* x, T* out, i64* indices, i64 planes, i64 height, i64 width,
                         i64 out_h, i64 out_w, i64 kernel_h, i64 kernel_w, i64 step_h, i64 step_w,
                         i64 pad_h, i64 pad_w, i64 spread_h, i64 spread_w) {
    typedef typename Wide<T>::type A;
    I count = (I)(planes * out_h * out_w), oh = (I)out_h, ow = (I)out_w;
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        I column = at % ow, row = at / ow % oh;
        const T* image = x + (i64)(at / ow / oh) * height * width;
        I top = row * (I)step_h - (I)pad_h, left = column * (I)step_w - (I)pad_w;
        A best = -infinity<A>();
        i64 position = -1;
        for (I i = 0; i < (I)kernel_h; i++) {
            I y = top + i * (I)spread_h;
            if (y < 0 || y >= (I)height) continue;
            for (I j = 0; j < (I)kernel_w; j++) {
                I z = left + j * (I)spread_w;
                if (z < 0 || z >= (I)width) continue;
                A value = widen(image[y * (I)width + z]);
                // The first of equal ones, and the last nan, as in PyTorch.
                if (position < 0 || value > best || value != value) {
                    best = value;
                    position = (i64)(y * (I)width + z);
                }
            }
        }
        out[at] = narrow<T>(best);
        indices[at] = position;
    }
}

template <class T, class I>
__global__ void max_pool_backward(const T* grad, const i64* indices, T* out, i64 planes, i64 height,
                                  i64 width, i64 out_h, i64 out_w, i64 kernel_h, i64 kernel_w,
                                  i64 step_h, i64 step_w, i64 pad_h, i64 pad_w, i64 spread_h,
                                  i64 spread_w) {
    typedef typename Wide<T>::type A;
    I count = (I)(planes * height * width), w = (I)width, h = (I)height;
    I reach_h = (I)((kernel_h - 1) * spread_h + 1), reach_w = (I)((kernel_w - 1) * spread_w + 1);
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        I z = at % w, y = at / w % h;
        i64 windows = (i64)(at / w / h) * out_h * out_w;
        i64 position = (i64)(y * w + z);
        I rows = last_window(y + (I)pad_h, (I)step_h, (I)out_h);
        I columns = last_window(z + (I)pad_w, (I)step_w, (I)out_w);
        A total = 0;
        for (I i = first_window(y + (I)pad_h, reach_h, (I)step_h); i < rows; i++)
            for (I j = first_window(z + (I)pad_w, reach_w, (I)step_w); j < columns; j++) {
                i64 window = windows + i * (I)out_w + j;
                if (indices[window] == position) total += widen(grad[window]);
            }
        out[at] = narrow<T>(total);
    }
}

// How many elements a window averages along one dimension: with the padding, or without.
template <class I>
__device__ inline I extent(I start, I kernel, I size, I pad, bool with_padding) {
    I end = start + kernel < size + pad ? start + kernel : size + pad;
    if (with_padding) return end - start;
    return (end < size ? end : size) - (start > 0 ? start : 0);
}

template <class T, class I>
__global__ void avg_pool(const T* x, T* out, i64 planes, i64 height, i64 width, i64 out_h,
                         i64 out_w, i64 kernel_h, i64 kernel_w, i64 step_h, i64 step_w, i64 pad_h,
                         i64 pad_w, i64 with_padding, i64 divisor) {
    typedef typename Wide<T>::type A;
    I count = (I)(planes * out_h * out_w), oh = (I)out_h, ow = (I)out_w;
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        I column = at % ow, row = at / ow % oh;
        const T* image = x + (i64)(at / ow / oh) * height * width;
        I top = row * (I)step_h - (I)pad_h, left = column * (I)step_w - (I)pad_w;
        A total = 0;
        I bottom = top + (I)kernel_h < (I)height ? top + (I)kernel_h : (I)height;
        I right = left + (I)kernel_w < (I)width ? left + (I)kernel_w : (I)width;
        for (I y = top > 0 ? top : 0; y < bottom; y++)
            for (I z = left > 0 ? left : 0; z < right; z++) total += widen(image[y * (I)width + z]);
        A by = divisor ? (A)divisor
                       : (A)extent(top, (I)kernel_h, (I)height, (I)pad_h, with_padding != 0) *
                             (A)extent(left, (I)kernel_w, (I)width, (I)pad_w, with_padding != 0);
        out[at] = narrow<T>(total / by);
    }
}

template <class T, class I>
__global__ void avg_pool_backward(const T* grad, T* out, i64 planes, i64 height, i64 width,
                                  i64 out_h, i64 out_w, i64 kernel_h, i64 kernel_w, i64 step_h,
                                  i64 step_w, i64 pad_h, i64 pad_w, i64 with_padding, i64 divisor) {
    typedef typename Wide<T>::type A;
    I count = (I)(planes * height * width), w = (I)width, h = (I)height;
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        I z = at % w, y = at / w % h;
        const T* windows = grad + (i64)(at / w / h) * out_h * out_w;
        I rows = last_window(y + (I)pad_h, (I)step_h, (I)out_h);
        I columns = last_window(z + (I)pad_w, (I)step_w, (I)out_w);
        A total = 0;
        for (I i = first_window(y + (I)pad_h, (I)kernel_h, (I)step_h); i < rows; i++)
            for (I j = first_window(z + (I)pad_w, (I)kernel_w, (I)step_w); j < columns; j++) {
                I top = i * (I)step_h - (I)pad_h, left = j * (I)step_w - (I)pad_w;
                A by = divisor
                           ? (A)divisor
                           : (A)extent(top, (I)kernel_h, h, (I)pad_h, with_padding != 0) *
                                 (A)extent(left, (I)kernel_w, w, (I)pad_w, with_padding != 0);
                total += widen(windows[i * (I)out_w + j]) / by;
            }
        out[at] = narrow<T>(total);
    }
}
