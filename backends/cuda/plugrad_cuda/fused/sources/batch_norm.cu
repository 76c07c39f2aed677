// Normalisation of channels of (outer, channels, area): native_batch_norm and its gradients.
//
// T of the input, P of weight, bias and running statistics, I of positions: int where they fit into
// 31 bits, since divisions of long long are slow. One block finds the statistics of a
// channel; a second launch applies them to the elements.
#include "common.cuh"

// The place of element i of a channel.
template <class I> __device__ inline I place(i64 i, i64 channel, i64 channels, i64 area) {
    I n = (I)i, size = (I)area;
    return (n / size * (I)channels + (I)channel) * size + n % size;
}

// The channel of element i.
template <class I> __device__ inline I channel_of(i64 i, i64 channels, i64 area) {
    return (I)i / (I)area % (I)channels;
}

template <class T, class P, class I>
ROW_KERNEL batch_statistics(const T* x, P* running_mean, P* running_var,
                            typename Wide<T>::type* means, typename Wide<T>::type* invstds,
                            i64 outer, i64 channels, i64 area, double momentum, double eps) {
    typedef typename Wide<T>::type A;
    i64 count = outer * area;
    for (i64 channel = blockIdx.x; channel < channels; channel += gridDim.x) {
        A total = 0;
        for (i64 i = threadIdx.x; i < count; i += blockDim.x)
            total += widen(x[place<I>(i, channel, channels, area)]);
        A mean = row_sum(total) / (A)count;
        A squares = 0;
        for (i64 i = threadIdx.x; i < count; i += blockDim.x) {
            A centered = widen(x[place<I>(i, channel, channels, area)]) - mean;
            squares += centered * centered;
        }
        squares = row_sum(squares);
        if (threadIdx.x != 0) continue;
        means[channel] = mean;
        invstds[channel] = (A)1 / sqrt(squares / (A)count + (A)eps);
        if (running_mean) {
            A old = widen(running_mean[channel]);
            running_mean[channel] = Narrow<P>::from(old + (A)momentum * (mean - old));
        }
        if (running_var) {
            // PyTorch keeps the unbiased variance; of a single value that is nan.
            A old = widen(running_var[channel]);
            A unbiased = squares / (A)count * ((A)count / (A)(count - 1));
            running_var[channel] = Narrow<P>::from(old + (A)momentum * (unbiased - old));
        }
    }
}

// By the batch's statistics, or where these are null by the running ones.
template <class T, class P, class I>
__global__ void batch_normalize(const T* x, const P* weight, const P* bias, const P* running_mean,
                                const P* running_var, const typename Wide<T>::type* means,
                                const typename Wide<T>::type* invstds, T* out, i64 count,
                                i64 channels, i64 area, double eps) {
    typedef typename Wide<T>::type A;
    for (i64 i = thread_number(); i < count; i += thread_count()) {
        I channel = channel_of<I>(i, channels, area);
        A mean = means ? means[channel] : (A)widen(running_mean[channel]);
        A scale =
            means ? invstds[channel] : (A)1 / sqrt((A)widen(running_var[channel]) + (A)eps);
        if (weight) scale *= widen(weight[channel]);
        A value = (widen(x[i]) - mean) * scale;
        if (bias) value += widen(bias[channel]);
        out[i] = narrow<T>(value);
    }
}

// Sums of the gradient, and of its products with the normalised input, for each channel.
template <class T, class P, class I>
ROW_KERNEL batch_gradient_sums(const T* grad, const T* x, const P* running_mean,
                               const P* running_var, const typename Wide<T>::type* means,
                               const typename Wide<T>::type* invstds,
                               typename Wide<T>::type* totals,
                               typename Wide<T>::type* alongs, i64 outer, i64 channels, i64 area,
                               double eps) {
    typedef typename Wide<T>::type A;
    for (i64 channel = blockIdx.x; channel < channels; channel += gridDim.x) {
        A mean = means ? means[channel] : (A)widen(running_mean[channel]);
        A invstd =
            means ? invstds[channel] : (A)1 / sqrt((A)widen(running_var[channel]) + (A)eps);
        A total = 0, along = 0;
        for (i64 i = threadIdx.x; i < outer * area; i += blockDim.x) {
            I at = place<I>(i, channel, channels, area);
            A g = widen(grad[at]);
            total += g;
            along += g * (widen(x[at]) - mean) * invstd;
        }
        total = row_sum(total);
        along = row_sum(along);
        if (threadIdx.x != 0) continue;
        totals[channel] = total;
        alongs[channel] = along;
    }
}

template <class T, class P, class I>
__global__ void batch_to_input(const T* grad, const T* x, const P* weight, const P* running_var,
                               const typename Wide<T>::type* means,
                               const typename Wide<T>::type* invstds,
                               const typename Wide<T>::type* totals,
                               const typename Wide<T>::type* alongs, T* out, i64 outer,
                               i64 channels, i64 area, double eps) {
    typedef typename Wide<T>::type A;
    A count = (A)(outer * area);
    for (i64 i = thread_number(); i < outer * channels * area; i += thread_count()) {
        I channel = channel_of<I>(i, channels, area);
        A invstd =
            means ? invstds[channel] : (A)1 / sqrt((A)widen(running_var[channel]) + (A)eps);
        A value = widen(grad[i]);
        if (means) {
            A normalized = (widen(x[i]) - means[channel]) * invstd;
            value -= normalized * (alongs[channel] / count) + totals[channel] / count;
        }
        if (weight) value *= widen(weight[channel]);
        out[i] = narrow<T>(value * invstd);
    }
}
