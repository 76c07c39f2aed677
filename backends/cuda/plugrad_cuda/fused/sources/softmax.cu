// softmax, log_softmax and their gradients along one dimension of (outer, width, inner).
//
// Rows (inner = 1): blockDim.x threads for a row, blockDim.y rows in a block. Columns: 32 x 8
// threads for 32 neighbouring columns, each read by 8 threads. Maximum and sum are found in one
// pass, by the online normaliser of Milakov and Gimelshein, 2018.
#include "common.cuh"

// The largest element so far, and the sum of exp(element - largest).
template <class A> struct Peak {
    A top, total;
};

template <class A> __device__ inline void include(Peak<A>& p, A x) {
    if (x > p.top) {
        // x - x is nan for inf, whose softmax is nan.
        p.total = p.total * exp(p.top - x) + (A)1 + (x - x);
        p.top = x;
    } else if (x != -infinity<A>() || p.top != -infinity<A>()) {
        p.total += exp(x - p.top);
    }
}

template <class A> __device__ inline Peak<A> merge(Peak<A> a, Peak<A> b) {
    if (b.top > a.top) {
        Peak<A> other = a;
        a = b;
        b = other;
    }
    a.total += a.top == b.top ? b.total : b.total * exp(b.top - a.top);
    return a;
}

template <class A> __device__ Peak<A> warp_merge(Peak<A> p) {
    for (int step = 16; step > 0; step /= 2) {
        Peak<A> other = {__shfl_xor_sync(0xffffffffu, p.top, step),
                         __shfl_xor_sync(0xffffffffu, p.total, step)};
        p = merge(p, other);
    }
    return p;
}

template <class A> __device__ Peak<A> row_merge(Peak<A> p) {
    p = warp_merge(p);
    if (blockDim.x == 32) return p;
    __shared__ A tops[32];
    __shared__ A totals[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) {
        tops[warp] = p.top;
        totals[warp] = p.total;
    }
    __syncthreads();
    p = {-infinity<A>(), (A)0};
    if (lane < blockDim.x / 32) p = {tops[lane], totals[lane]};
    p = warp_merge(p);
    __syncthreads();
    return p;
}

template <class T, class O, int LOG>
ROW_KERNEL softmax_rows(const T* x, O* out, i64 rows, i64 width) {
    typedef typename Wide<T>::type A;
    // All threads of a block go round equally often, as they meet at barriers.
    for (i64 first = (i64)blockIdx.x * blockDim.y; first < rows;
         first += (i64)gridDim.x * blockDim.y) {
        i64 row = min_of(first + threadIdx.y, rows - 1);
        const T* from = x + row * width;
        Peak<A> p = {-infinity<A>(), (A)0};
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) include(p, (A)widen(from[i]));
        p = row_merge(p);
        if (first + threadIdx.y >= rows) continue;
        A scale = LOG ? log(p.total) : p.total;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A shifted = widen(from[i]) - p.top;
            out[row * width + i] =
                Narrow<O>::from(LOG ? shifted - scale : exp(shifted) / scale);
        }
    }
}

template <class T, class O, int LOG>
__global__ void softmax_columns(const T* x, O* out, i64 outer, i64 width, i64 inner) {
    typedef typename Wide<T>::type A;
    __shared__ A tops[8][33];
    __shared__ A totals[8][33];
    i64 strips = (inner + 31) / 32;
    for (i64 block = blockIdx.x; block < outer * strips; block += gridDim.x) {
        i64 column = block % strips * 32 + threadIdx.x;
        i64 start = block / strips * width * inner + column;
        bool inside = column < inner;
        Peak<A> p = {-infinity<A>(), (A)0};
        if (inside)
            for (i64 i = threadIdx.y; i < width; i += 8) include(p, (A)widen(x[start + i * inner]));
        tops[threadIdx.y][threadIdx.x] = p.top;
        totals[threadIdx.y][threadIdx.x] = p.total;
        __syncthreads();
        p = {tops[0][threadIdx.x], totals[0][threadIdx.x]};
        for (int i = 1; i < 8; i++) {
            Peak<A> other = {tops[i][threadIdx.x], totals[i][threadIdx.x]};
            p = merge(p, other);
        }
        __syncthreads();
        if (!inside) continue;
        A scale = LOG ? log(p.total) : p.total;
        for (i64 i = threadIdx.y; i < width; i += 8) {
            A shifted = widen(x[start + i * inner]) - p.top;
            out[start + i * inner] =
                Narrow<O>::from(LOG ? shifted - scale : exp(shifted) / scale);
        }
    }
}

template <class A, int LOG> __device__ inline A along(A grad, A y) {
    return LOG ? grad : grad * y;
}

template <class A, int LOG> __device__ inline A to_input(A grad, A y, A total) {
    return LOG ? grad - exp(y) * total : grad * y - y * total;
}

// T of the gradient and the result of the forward, O of the input.
template <class T, class O, int LOG>
ROW_KERNEL softmax_backward_rows(const T* grad, const T* y, O* out, i64 rows, i64 width) {
    typedef typename Wide<T>::type A;
    for (i64 first = (i64)blockIdx.x * blockDim.y; first < rows;
         first += (i64)gridDim.x * blockDim.y) {
        i64 row = min_of(first + threadIdx.y, rows - 1);
        i64 start = row * width;
        A total = 0;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x)
            total += along<A, LOG>(widen(grad[start + i]), widen(y[start + i]));
        total = row_sum(total);
        if (first + threadIdx.y >= rows) continue;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x)
            out[start + i] = Narrow<O>::from(
                to_input<A, LOG>(widen(grad[start + i]), widen(y[start + i]), total));
    }
}

template <class T, class O, int LOG>
__global__ void softmax_backward_columns(const T* grad, const T* y, O* out, i64 outer, i64 width,
                                         i64 inner) {
    typedef typename Wide<T>::type A;
    __shared__ A totals[8][33];
    i64 strips = (inner + 31) / 32;
    for (i64 block = blockIdx.x; block < outer * strips; block += gridDim.x) {
        i64 column = block % strips * 32 + threadIdx.x;
        i64 start = block / strips * width * inner + column;
        bool inside = column < inner;
        A total = 0;
        if (inside)
            for (i64 i = threadIdx.y; i < width; i += 8)
                total += along<A, LOG>(widen(grad[start + i * inner]), widen(y[start + i * inner]));
        totals[threadIdx.y][threadIdx.x] = total;
        __syncthreads();
        total = 0;
        for (int i = 0; i < 8; i++) total += totals[i][threadIdx.x];
        __syncthreads();
        if (!inside) continue;
        for (i64 i = threadIdx.y; i < width; i += 8)
            out[start + i * inner] = Narrow<O>::from(to_input<A, LOG>(
                widen(grad[start + i * inner]), widen(y[start + i * inner]), total));
    }
}
