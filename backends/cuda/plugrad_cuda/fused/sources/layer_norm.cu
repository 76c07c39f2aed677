// Normalisation of rows (rows, width), by row: native_layer_norm and its gradients.
//
// T of the input, P of weight and bias. Mean and 1 / deviation are accumulators. The gradients of
// weight and bias are sums over rows: 32 x 8 threads make partial sums of 32 columns over a share
// of the rows, and `finish_columns` adds those up, always in the same order.
#include "common.cuh"

template <class T, class P>
ROW_KERNEL layer_norm(const T* x, const P* weight, const P* bias, T* out,
                      typename Wide<T>::type* means, typename Wide<T>::type* rstds, i64 rows,
                      i64 width, double eps) {
    typedef typename Wide<T>::type A;
    for (i64 first = (i64)blockIdx.x * blockDim.y; first < rows;
         first += (i64)gridDim.x * blockDim.y) {
        i64 row = min_of(first + threadIdx.y, rows - 1);
        const T* from = x + row * width;
        A total = 0;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) total += widen(from[i]);
        A mean = row_sum(total) / (A)width;
        // Squares of differences, as those of large means would cancel.
        A squares = 0;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A centered = widen(from[i]) - mean;
            squares += centered * centered;
        }
        A rstd = (A)1 / sqrt(row_sum(squares) / (A)width + (A)eps);
        if (first + threadIdx.y >= rows) continue;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A value = (widen(from[i]) - mean) * rstd;
            if (weight) value *= widen(weight[i]);
            if (bias) value += widen(bias[i]);
            out[row * width + i] = narrow<T>(value);
        }
        if (threadIdx.x == 0) {
            means[row] = mean;
            rstds[row] = rstd;
        }
    }
}

template <class T, class P>
ROW_KERNEL layer_norm_to_input(const T* grad, const T* x, const P* weight,
                               const typename Wide<T>::type* means,
                               const typename Wide<T>::type* rstds, T* out, i64 rows,
                               i64 width) {
    typedef typename Wide<T>::type A;
    for (i64 first = (i64)blockIdx.x * blockDim.y; first < rows;
         first += (i64)gridDim.x * blockDim.y) {
        i64 row = min_of(first + threadIdx.y, rows - 1);
        i64 start = row * width;
        A mean = means[row], rstd = rstds[row];
        A total = 0, along = 0;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A weighted = widen(grad[start + i]);
            if (weight) weighted *= widen(weight[i]);
            total += weighted;
            along += weighted * (widen(x[start + i]) - mean) * rstd;
        }
        total = row_sum(total) / (A)width;
        along = row_sum(along) / (A)width;
        if (first + threadIdx.y >= rows) continue;
        for (i64 i = threadIdx.x; i < width; i += blockDim.x) {
            A weighted = widen(grad[start + i]);
            if (weight) weighted *= widen(weight[i]);
            A normalized = (widen(x[start + i]) - mean) * rstd;
            out[start + i] = narrow<T>((weighted - normalized * along - total) * rstd);
        }
    }
}

// Block (strip of columns, share of rows): partial sums, `shares` rows of them.
template <class T>
__global__ void layer_norm_to_parameters(const T* grad, const T* x,
                                         const typename Wide<T>::type* means,
                                         const typename Wide<T>::type* rstds,
                                         typename Wide<T>::type* to_weight,
                                         typename Wide<T>::type* to_bias, i64 rows, i64 width,
                                         i64 shares) {
    typedef typename Wide<T>::type A;
    __shared__ A weights[8][33];
    __shared__ A biases[8][33];
    i64 strips = (width + 31) / 32;
    i64 each = (rows + shares - 1) / shares;
    for (i64 block = blockIdx.x; block < strips * shares; block += gridDim.x) {
        i64 column = block % strips * 32 + threadIdx.x, share = block / strips;
        A weight = 0, bias = 0;
        if (column < width) {
            i64 end = min_of(rows, (share + 1) * each);
            for (i64 row = share * each + threadIdx.y; row < end; row += 8) {
                A g = widen(grad[row * width + column]);
                weight += g * (widen(x[row * width + column]) - means[row]) * rstds[row];
                bias += g;
            }
        }
        weights[threadIdx.y][threadIdx.x] = weight;
        biases[threadIdx.y][threadIdx.x] = bias;
        __syncthreads();
        if (threadIdx.y == 0 && column < width) {
            for (int i = 1; i < 8; i++) {
                weight += weights[i][threadIdx.x];
                bias += biases[i][threadIdx.x];
            }
            if (to_weight) to_weight[share * width + column] = weight;
            if (to_bias) to_bias[share * width + column] = bias;
        }
        __syncthreads();
    }
}
