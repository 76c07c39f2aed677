// nll_loss over (samples, classes, inner), and its gradient.
//
// One block, or several whose partial sums `nll_finish` adds up, always in the same order.
#include "common.cuh"

// A target out of range is told by `bad`, if the host looks at it, and its loss is not read. Else it
// ends the launch, as an assertion in PyTorch's kernels does.
__device__ inline bool is_target(i64 target, i64 classes, i64* bad) {
    if (target >= 0 && target < classes) return true;
    if (!bad) __trap();
    *bad = 1;
    return false;
}

template <class T>
__device__ inline void nll_write(typename Wide<T>::type loss, typename Wide<T>::type weights,
                                 T* total, T* total_weight, int mean) {
    if (total) *total = narrow<T>(mean ? loss / weights : loss);
    *total_weight = narrow<T>(weights);
}

// `losses` of each target, `partial` sums of two for each block; whichever is not null.
template <class T>
ROW_KERNEL nll_forward(const T* x, const i64* target, const T* weight, T* losses,
                       typename Wide<T>::type* partial, T* total, T* total_weight, i64* bad,
                       i64 samples, i64 classes, i64 inner, i64 ignored, i64 mean) {
    typedef typename Wide<T>::type A;
    A loss = 0, weights = 0;
    for (i64 i = thread_number(); i < samples * inner; i += thread_count()) {
        i64 label = target[i];
        A here = 0;
        if (label != ignored && is_target(label, classes, bad)) {
            A factor = weight ? (A)widen(weight[label]) : (A)1;
            here = -(A)widen(x[(i / inner * classes + label) * inner + i % inner]) * factor;
            weights += factor;
        }
        if (losses) losses[i] = narrow<T>(here);
        loss += here;
    }
    loss = row_sum(loss);
    weights = row_sum(weights);
    if (threadIdx.x != 0) return;
    if (partial) {
        partial[2 * blockIdx.x] = loss;
        partial[2 * blockIdx.x + 1] = weights;
    } else {
        nll_write<T>(loss, weights, total, total_weight, (int)mean);
    }
}

template <class T>
ROW_KERNEL nll_finish(const typename Wide<T>::type* partial, T* total, T* total_weight,
                      i64 blocks, i64 mean) {
    typedef typename Wide<T>::type A;
    A loss = 0, weights = 0;
    for (i64 i = threadIdx.x; i < blocks; i += blockDim.x) {
        loss += partial[2 * i];
        weights += partial[2 * i + 1];
    }
    loss = row_sum(loss);
    weights = row_sum(weights);
    if (threadIdx.x == 0) nll_write<T>(loss, weights, total, total_weight, (int)mean);
}

// Every element of the result is written here: nothing has to be filled with zeros before. I is
// int where positions fit into 31 bits, since divisions of long long are slow.
template <class T, class I>
__global__ void nll_backward(const T* grad, const i64* target, const T* weight,
                             const T* total_weight, T* out, i64 samples, i64 classes, i64 inner,
                             i64 ignored, i64 mean, i64 each) {
    typedef typename Wide<T>::type A;
    for (i64 n = thread_number(); n < samples * classes * inner; n += thread_count()) {
        I i = (I)n, size = (I)inner;
        I at = i / size / (I)classes * size + i % size;
        i64 label = target[at];
        A value = 0;
        if (label != ignored && is_target(label, classes, nullptr)) {
            if (label == i / size % (I)classes) {
                value = -(A)widen(grad[each ? at : 0]);
                if (mean) value /= widen(*total_weight);
                if (weight) value *= widen(weight[label]);
            }
        }
        out[i] = narrow<T>(value);
    }
}
