// The last step of reductions in two: sums of partial sums (shares, width) over the shares.
#include "common.cuh"

template <class A, class P>
__global__ void finish_columns(const A* partial, P* out, i64 shares, i64 width) {
    for (i64 i = thread_number(); i < width; i += thread_count()) {
        A total = 0;
        for (i64 share = 0; share < shares; share++) total += partial[share * width + i];
        out[i] = Narrow<P>::from(total);
    }
}

// Sums of (outer, channels, area) over all but the channels, one block for each channel.
// I is int where positions fit into 31 bits, since divisions of long long are slow.
template <class T, class I>
ROW_KERNEL channel_sums(const T* x, T* out, i64 outer, i64 channels, i64 area) {
    typedef typename Wide<T>::type A;
    for (i64 channel = blockIdx.x; channel < channels; channel += gridDim.x) {
        A total = 0;
        for (i64 n = threadIdx.x; n < outer * area; n += blockDim.x) {
            I i = (I)n, size = (I)area;
            total += widen(x[(i / size * (I)channels + (I)channel) * size + i % size]);
        }
        total = row_sum(total);
        if (threadIdx.x == 0) out[channel] = narrow<T>(total);
    }
}
