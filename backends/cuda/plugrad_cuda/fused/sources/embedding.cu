// Rows of a table by their numbers, and the gradient: rows added up by number.
//
// threadIdx.x goes along a row, threadIdx.y over rows, so that no element has to be divided by the
// width, and all threads of a row read the same index.
#include "common.cuh"

// An element of 16 bytes: complex128.
struct __align__(16) bytes16_t {
    i64 low, high;
};

__device__ inline i64 row_number() { return (i64)blockIdx.x * blockDim.y + threadIdx.y; }
__device__ inline i64 row_count() { return (i64)gridDim.x * blockDim.y; }

__device__ inline void check_row(i64 row, i64 rows) {
    if (row < 0 || row >= rows) __trap();
}

// E is any type of the elements' size: they are only moved.
template <class E>
__global__ void embedding(const E* table, const i64* indices, E* out, i64 count, i64 rows,
                          i64 width) {
    for (i64 n = row_number(); n < count; n += row_count()) {
        i64 row = indices[n];
        check_row(row, rows);
        for (i64 i = threadIdx.x; i < width; i += blockDim.x)
            out[n * width + i] = table[row * width + i];
    }
}

__global__ void embedding_counts(const i64* indices, int* counts, i64 count, i64 rows) {
    for (i64 i = thread_number(); i < count; i += thread_count()) {
        check_row(indices[i], rows);
        atomicAdd(counts + indices[i], 1);
    }
}

// Adds up in `sums`, which is zero before. The order of additions is not the same in every run.
template <class T>
__global__ void embedding_backward(const T* grad, const i64* indices, typename Wide<T>::type* sums,
                                   i64 count, i64 rows, i64 width, i64 padding) {
    for (i64 n = row_number(); n < count; n += row_count()) {
        i64 row = indices[n];
        check_row(row, rows);
        if (row == padding) continue;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x)
            atomicAdd(sums + row * width + i, widen(grad[n * width + i]));
    }
}

// Divides by how often a row was taken, unless `counts` is null.
template <class T>
__global__ void embedding_finish(const typename Wide<T>::type* sums, const int* counts, T* out,
                                 i64 rows, i64 width) {
    typedef typename Wide<T>::type A;
    for (i64 row = row_number(); row < rows; row += row_count()) {
        A often = counts && counts[row] > 1 ? (A)counts[row] : (A)1;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x)
            out[row * width + i] = narrow<T>(sums[row * width + i] / often);
    }
}
