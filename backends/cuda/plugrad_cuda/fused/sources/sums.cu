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
template <class T, class P>
ROW_KERNEL channel_sums(const T* x, P* out, i64 outer, i64 channels, i64 area) {
    typedef typename Wide<T>::type A;
    for (i64 channel = blockIdx.x; channel < channels; channel += gridDim.x) {
        A total = 0;
        for (i64 i = threadIdx.x; i < outer * area; i += blockDim.x)
            total += widen(x[(i / area * channels + channel) * area + i % area]);
        total = row_sum(total);
        if (threadIdx.x == 0) out[channel] = Narrow<P>::from(total);
    }
}
