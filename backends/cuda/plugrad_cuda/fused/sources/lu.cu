// LU with partial pivoting of a batch of row-major matrices (count, m, n), in place: a block for
// each, of 32 x blockDim.y threads. And the order of rows that exchanges of rows come to.
#include "common.cuh"

template <class R> struct complex_t {
    R re, im;
};
typedef complex_t<float> complex64_t;
typedef complex_t<double> complex128_t;

template <class R> __device__ inline complex_t<R> operator-(complex_t<R> a, complex_t<R> b) {
    return {a.re - b.re, a.im - b.im};
}
template <class R> __device__ inline complex_t<R> operator*(complex_t<R> a, complex_t<R> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// What the size of numbers is measured in.
template <class T> struct Real { typedef T type; };
template <class R> struct Real<complex_t<R>> { typedef R type; };

__device__ inline float size_of(float a) { return a < 0 ? -a : a; }
__device__ inline double size_of(double a) { return a < 0 ? -a : a; }
// LAPACK compares complex numbers by the sum of their parts, which needs no root.
template <class R> __device__ inline R size_of(complex_t<R> a) {
    return size_of(a.re) + size_of(a.im);
}
// By the larger part of the divisor, so that no square overflows: Smith, 1962.
template <class R> __device__ inline complex_t<R> operator/(complex_t<R> a, complex_t<R> b) {
    if (size_of(b.re) >= size_of(b.im)) {
        R ratio = b.im / b.re, scale = b.re + b.im * ratio;
        return {(a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale};
    }
    R ratio = b.re / b.im, scale = b.re * ratio + b.im;
    return {(a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale};
}

template <class R> struct Largest {
    R size;
    int row;
};

// The first row among the largest. What is nan is larger than nothing.
template <class R> __device__ inline void include(Largest<R>& best, R size, int row) {
    if (size > best.size || (size == best.size && row < best.row)) best = {size, row};
}

template <class R> __device__ void warp_include(Largest<R>& best) {
    for (int step = 16; step > 0; step /= 2) {
        R size = __shfl_xor_sync(0xffffffffu, best.size, step);
        int row = __shfl_xor_sync(0xffffffffu, best.row, step);
        include(best, size, row);
    }
}

// The row at or below the diagonal that column j begins with. The diagonal's, if that is nan.
template <class T> __device__ int pivot_row(const T* a, int j, i64 m, i64 n) {
    typedef typename Real<T>::type R;
    __shared__ R sizes[32];
    __shared__ int rows[32];
    R size = size_of(a[j * n + j]);
    if (size != size) return j;
    Largest<R> best = {size, j};
    int thread = threadIdx.y * 32 + threadIdx.x;
    for (int row = j + 1 + thread; row < m; row += 32 * blockDim.y)
        include(best, size_of(a[row * n + j]), row);
    warp_include(best);
    if (threadIdx.x == 0) {
        sizes[threadIdx.y] = best.size;
        rows[threadIdx.y] = best.row;
    }
    __syncthreads();
    best = {size, j};
    if (threadIdx.x < blockDim.y) include(best, sizes[threadIdx.x], rows[threadIdx.x]);
    warp_include(best);
    return best.row;
}

template <class T>
ROW_KERNEL lu_factor(T* matrices, int* pivots, int* info, i64 count, i64 m, i64 n, i64 pivoted) {
    int k = min_of(m, n);
    int thread = threadIdx.y * 32 + threadIdx.x, threads = 32 * blockDim.y;
    for (i64 number = blockIdx.x; number < count; number += gridDim.x) {
        T* a = matrices + number * m * n;
        int zero = 0;
        for (int j = 0; j < k; j++) {
            int row = pivoted ? pivot_row(a, j, m, n) : j;
            if (row != j)
                for (i64 i = thread; i < n; i += threads) {
                    T moved = a[j * n + i];
                    a[j * n + i] = a[row * n + i];
                    a[row * n + i] = moved;
                }
            __syncthreads();
            if (thread == 0) pivots[number * k + j] = row + 1;
            T divisor = a[j * n + j];
            if (size_of(divisor) == 0)
                zero = zero ? zero : j + 1;
            else
                for (i64 i = j + 1 + thread; i < m; i += threads)
                    a[i * n + j] = a[i * n + j] / divisor;
            __syncthreads();
            for (i64 i = j + 1 + threadIdx.y; i < m; i += blockDim.y)
                for (i64 other = j + 1 + threadIdx.x; other < n; other += 32)
                    a[i * n + other] = a[i * n + other] - a[i * n + j] * a[j * n + other];
            __syncthreads();
        }
        if (thread == 0) info[number] = zero;
    }
}

// What row of the factorized matrix each row of L @ U is: a thread for each matrix.
__global__ void row_order(const int* pivots, i64* order, i64 count, i64 k, i64 m) {
    for (i64 number = thread_number(); number < count; number += thread_count()) {
        i64* rows = order + number * m;
        for (i64 i = 0; i < m; i++) rows[i] = i;
        for (i64 j = 0; j < k; j++) {
            i64 other = (i64)pivots[number * k + j] - 1;
            if (other < 0 || other >= m) __trap();
            i64 moved = rows[j];
            rows[j] = rows[other];
            rows[other] = moved;
        }
    }
}
