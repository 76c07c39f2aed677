// max_pool2d and avg_pool2d over (planes, height, width), and their gradients.
//
// I is int where all positions fit into 31 bits, else long long: divisions of the latter are slow.
// Gradients are gathered: a thread looks through the windows that cover its element, so that
// nothing is added atomically and every run gives the same sums.
#include "common.cuh"

// Images and windows along one dimension; a window's taps are `spread` apart.
template <class I> struct Axis {
    I size, out, kernel, step, pad, spread;

    // Where in the image a window starts.
    __device__ I start(I window) const { return window * step - pad; }

    // The first window that reaches element `at` of the image, and one past the last.
    __device__ I first_window(I at) const {
        I reach = (kernel - 1) * spread + 1;
        return at + pad < reach ? 0 : (at + pad - reach) / step + 1;
    }
    __device__ I last_window(I at) const {
        I end = (at + pad) / step + 1;
        return end < out ? end : out;
    }

    // How many elements a window averages: with the padding, or without.
    __device__ I averaged(I start, bool with_padding) const {
        I end = start + kernel < size + pad ? start + kernel : size + pad;
        if (with_padding) return end - start;
        return (end < size ? end : size) - (start > 0 ? start : 0);
    }
};

#define WINDOWS                                                                                    \
    i64 planes, i64 height, i64 width, i64 out_h, i64 out_w, i64 kernel_h, i64 kernel_w,           \
        i64 step_h, i64 step_w, i64 pad_h, i64 pad_w, i64 spread_h, i64 spread_w
#define AXES(spread_h, spread_w)                                                                   \
    Axis<I> h = {(I)height, (I)out_h, (I)kernel_h, (I)step_h, (I)pad_h, (I)(spread_h)};            \
    Axis<I> w = {(I)width, (I)out_w, (I)kernel_w, (I)step_w, (I)pad_w, (I)(spread_w)}

template <class T, class I>
__global__ void max_pool(const T* x, T* out, i64* indices, WINDOWS) {
    typedef typename Wide<T>::type A;
    AXES(spread_h, spread_w);
    I count = (I)(planes * out_h * out_w);
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        const T* image = x + (i64)(at / w.out / h.out) * height * width;
        I top = h.start(at / w.out % h.out), left = w.start(at % w.out);
        A best = -infinity<A>();
        i64 position = -1;
        for (I i = 0; i < h.kernel; i++) {
            I y = top + i * h.spread;
            if (y < 0 || y >= h.size) continue;
            for (I j = 0; j < w.kernel; j++) {
                I z = left + j * w.spread;
                if (z < 0 || z >= w.size) continue;
                A value = widen(image[y * w.size + z]);
                // The first of equal ones, and the last nan, as in PyTorch.
                if (position < 0 || value > best || value != value) {
                    best = value;
                    position = (i64)(y * w.size + z);
                }
            }
        }
        out[at] = narrow<T>(best);
        indices[at] = position;
    }
}

template <class T, class I>
__global__ void max_pool_backward(const T* grad, const i64* indices, T* out, WINDOWS) {
    typedef typename Wide<T>::type A;
    AXES(spread_h, spread_w);
    I count = (I)(planes * height * width);
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        I z = at % w.size, y = at / w.size % h.size;
        i64 windows = (i64)(at / w.size / h.size) * out_h * out_w;
        i64 position = (i64)(y * w.size + z);
        I rows = h.last_window(y), columns = w.last_window(z);
        A total = 0;
        for (I i = h.first_window(y); i < rows; i++)
            for (I j = w.first_window(z); j < columns; j++) {
                i64 window = windows + i * w.out + j;
                if (indices[window] == position) total += widen(grad[window]);
            }
        out[at] = narrow<T>(total);
    }
}

// What the sum of the window that starts there is divided by. Windows that are averaged have taps
// side by side, which the compiler is told: it saves registers.
template <class A, class I>
__device__ inline A divisor_of(const Axis<I>& h, const Axis<I>& w, I top, I left, i64 with_padding,
                               i64 divisor) {
    if (divisor) return (A)divisor;
    return (A)h.averaged(top, with_padding != 0) * (A)w.averaged(left, with_padding != 0);
}

template <class T, class I>
__global__ void avg_pool(const T* x, T* out, WINDOWS, i64 with_padding, i64 divisor) {
    typedef typename Wide<T>::type A;
    AXES(1, 1);
    I count = (I)(planes * out_h * out_w);
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        const T* image = x + (i64)(at / w.out / h.out) * height * width;
        I top = h.start(at / w.out % h.out), left = w.start(at % w.out);
        I bottom = top + h.kernel < h.size ? top + h.kernel : h.size;
        I right = left + w.kernel < w.size ? left + w.kernel : w.size;
        A total = 0;
        for (I y = top > 0 ? top : 0; y < bottom; y++)
            for (I z = left > 0 ? left : 0; z < right; z++) total += widen(image[y * w.size + z]);
        out[at] = narrow<T>(total / divisor_of<A>(h, w, top, left, with_padding, divisor));
    }
}

template <class T, class I>
__global__ void avg_pool_backward(const T* grad, T* out, WINDOWS, i64 with_padding, i64 divisor) {
    typedef typename Wide<T>::type A;
    AXES(1, 1);
    I count = (I)(planes * height * width);
    for (i64 n = thread_number(); n < count; n += thread_count()) {
        I at = (I)n;
        I z = at % w.size, y = at / w.size % h.size;
        const T* windows = grad + (i64)(at / w.size / h.size) * out_h * out_w;
        I rows = h.last_window(y), columns = w.last_window(z);
        A total = 0;
        for (I i = h.first_window(y); i < rows; i++)
            for (I j = w.first_window(z); j < columns; j++)
                total += widen(windows[i * w.out + j]) /
                         divisor_of<A>(h, w, h.start(i), w.start(j), with_padding, divisor);
        out[at] = narrow<T>(total);
    }
}
