// Rows of a table by their numbers, and the gradient: rows added up by number.
#include "common.cuh"

// An element of 16 bytes: complex128.
struct __align__(16) bytes16_t {
    i64 low, high;
};

__device__ inline void check_row(i64 row, i64 rows) {
    if (row < 0 || row >= rows) __trap();
}

// E is any type of the elements' size: they are only moved.
template <class E>
__global__ void embedding(const E* table, const i64* indices, E* out, i64 count, i64 rows,
                          i64 width) {
    for (i64 i = thread_number(); i < count * width; i += thread_count()) {
        i64 row = indices[i / width];
        check_row(row, rows);
        out[i] = table[row * width + i % width];
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
    for (i64 i = thread_number(); i < count * width; i += thread_count()) {
        i64 row = indices[i / width];
        check_row(row, rows);
        if (row != padding) atomicAdd(sums + row * width + i % width, widen(grad[i]));
    }
}

// Divides by how often a row was taken, unless `counts` is null.
template <class T>
__global__ void embedding_finish(const typename Wide<T>::type* sums, const int* counts, T* out,
                                 i64 rows, i64 width) {
    typedef typename Wide<T>::type A;
    for (i64 i = thread_number(); i < rows * width; i += thread_count()) {
        A value = sums[i];
        if (counts && counts[i / width] > 1) value /= (A)counts[i / width];
        out[i] = narrow<T>(value);
    }
}
