// Convolution over up to three spatial dimensions, and its gradients, as implicit GEMM: products
// of tiles in shared memory, whose elements are looked up in the images as they are loaded, so
// that the matrix of windows never exists. Fewer dimensions are leading ones of size 1.
//
// Each product is C[m, n] = sum over k of A[m, k] B[k, n], for each group:
//
//     product       m        n                      k                        A, B
//     forward       filter   image, output place    channel, tap             weight, input
//     to input      channel  image, input place     filter, tap              weight, gradient
//     to weight     filter   channel, tap           image, output place      gradient, input
//
// A transposed convolution is the product to input. The product to weight has few elements and
// long sums: blocks take shares of k, and `finish_columns` adds those up.
// I is int where all positions fit into 31 bits, else long long.
#include "common.cuh"

// A block of 16 x 16 threads computes TILE x TILE elements, each thread 4 x 4 of them.
#define TILE 64
#define DEPTH 16
#define EACH 4

// d, h, w of the spatial dimensions.
template <class I> struct Triple {
    I d, h, w;
};

template <class I> struct Shape {
    I images, channels, filters;  // of one group
    I groups;
    Triple<I> in, out, kernel, stride, pad, dilation;

    __device__ I taps() const { return kernel.d * kernel.h * kernel.w; }
    __device__ I inputs() const { return in.d * in.h * in.w; }
    __device__ I outputs() const { return out.d * out.h * out.w; }

    // The number of a group's channel, or filter, among all of an image's.
    __device__ I channel(I group, I number) const { return group * channels + number; }
    __device__ I filter(I group, I number) const { return group * filters + number; }

    // The element at a place of an image's channel, or of a result's filter.
    __device__ i64 input(I image, I channel, i64 place) const {
        return ((i64)image * groups * channels + channel) * inputs() + place;
    }
    __device__ i64 output(I image, I filter, i64 place) const {
        return ((i64)image * groups * filters + filter) * outputs() + place;
    }
};

template <class I> __device__ inline Triple<I> unravel(I i, const Triple<I>& sizes) {
    return {i / sizes.w / sizes.h, i / sizes.w % sizes.h, i % sizes.w};
}

template <class I> __device__ inline bool inside(I i, I size) { return i >= 0 && i < size; }

// The element of the input that output place `to` meets with `tap`; -1 in the padding.
template <class I>
__device__ inline i64 input_place(const Shape<I>& s, const Triple<I>& to, const Triple<I>& tap) {
    I d = to.d * s.stride.d - s.pad.d + tap.d * s.dilation.d;
    I h = to.h * s.stride.h - s.pad.h + tap.h * s.dilation.h;
    I w = to.w * s.stride.w - s.pad.w + tap.w * s.dilation.w;
    if (!inside(d, s.in.d) || !inside(h, s.in.h) || !inside(w, s.in.w)) return -1;
    return (i64)((d * s.in.h + h) * s.in.w + w);
}

template <class I> __device__ inline bool step_back(I& at, I stride, I size) {
    if (at < 0 || at % stride != 0) return false;
    at /= stride;
    return at < size;
}

// The output place that meets input place `from` with `tap`; -1 if there is none.
template <class I>
__device__ inline i64 output_place(const Shape<I>& s, const Triple<I>& from, const Triple<I>& tap) {
    I d = from.d + s.pad.d - tap.d * s.dilation.d;
    I h = from.h + s.pad.h - tap.h * s.dilation.h;
    I w = from.w + s.pad.w - tap.w * s.dilation.w;
    if (!step_back(d, s.stride.d, s.out.d) || !step_back(h, s.stride.h, s.out.h) ||
        !step_back(w, s.stride.w, s.out.w))
        return -1;
    return (i64)((d * s.out.h + h) * s.out.w + w);
}

// The products: how large they are, what they are made of, and where they go.
template <class T, class I> struct Forward {
    typedef typename Wide<T>::type A;
    static const bool RIGHT_ALONG_K = false;
    Shape<I> s;
    const T *x, *weight, *bias;
    T* out;

    __device__ I rows() const { return s.filters; }
    __device__ I columns() const { return s.images * s.outputs(); }
    __device__ I depth() const { return s.channels * s.taps(); }
    __device__ A left(I group, I m, I k) const {
        return widen(weight[(i64)s.filter(group, m) * depth() + k]);
    }
    __device__ A right(I group, I k, I n) const {
        Triple<I> to = unravel(n % s.outputs(), s.out);
        i64 at = input_place(s, to, unravel(k % s.taps(), s.kernel));
        if (at < 0) return 0;
        return widen(x[s.input(n / s.outputs(), s.channel(group, k / s.taps()), at)]);
    }
    __device__ void put(I group, I share, I m, I n, A value) const {
        I filter = s.filter(group, m);
        if (bias) value += widen(bias[filter]);
        out[s.output(n / s.outputs(), filter, n % s.outputs())] = narrow<T>(value);
    }
};

template <class T, class I> struct ToInput {
    typedef typename Wide<T>::type A;
    static const bool RIGHT_ALONG_K = false;
    Shape<I> s;
    const T *grad, *weight, *bias;
    T* out;

    __device__ I rows() const { return s.channels; }
    __device__ I columns() const { return s.images * s.inputs(); }
    __device__ I depth() const { return s.filters * s.taps(); }
    __device__ A left(I group, I m, I k) const {
        I filter = s.filter(group, k / s.taps());
        return widen(weight[((i64)filter * s.channels + m) * s.taps() + k % s.taps()]);
    }
    __device__ A right(I group, I k, I n) const {
        Triple<I> from = unravel(n % s.inputs(), s.in);
        i64 at = output_place(s, from, unravel(k % s.taps(), s.kernel));
        if (at < 0) return 0;
        return widen(grad[s.output(n / s.inputs(), s.filter(group, k / s.taps()), at)]);
    }
    __device__ void put(I group, I share, I m, I n, A value) const {
        I channel = s.channel(group, m);
        if (bias) value += widen(bias[channel]);
        out[s.input(n / s.inputs(), channel, n % s.inputs())] = narrow<T>(value);
    }
};

template <class T, class I> struct ToWeight {
    typedef typename Wide<T>::type A;
    static const bool RIGHT_ALONG_K = true;
    Shape<I> s;
    const T *grad, *x;
    A* out;

    __device__ I rows() const { return s.filters; }
    __device__ I columns() const { return s.channels * s.taps(); }
    __device__ I depth() const { return s.images * s.outputs(); }
    __device__ A left(I group, I m, I k) const {
        return widen(grad[s.output(k / s.outputs(), s.filter(group, m), k % s.outputs())]);
    }
    __device__ A right(I group, I k, I n) const {
        Triple<I> to = unravel(k % s.outputs(), s.out);
        i64 at = input_place(s, to, unravel(n % s.taps(), s.kernel));
        if (at < 0) return 0;
        return widen(x[s.input(k / s.outputs(), s.channel(group, n / s.taps()), at)]);
    }
    __device__ void put(I group, I share, I m, I n, A value) const {
        i64 row = ((i64)share * s.groups + group) * s.filters + m;
        out[row * columns() + n] = value;
    }
};

// Neighbouring threads load neighbouring elements of memory: along k on the left, on the right
// along n, which are places, or along k where these are the places.
template <class A, class I, class Product>
__device__ void multiply(const Product& product, I shares) {
    // The odd pitch keeps the threads of a warp that write a column out of each other's banks.
    __shared__ A lefts[DEPTH][TILE + 1];
    __shared__ A rights[DEPTH][TILE + 1];
    I rows = product.rows(), columns = product.columns(), depth = product.depth();
    I tall = (rows + TILE - 1) / TILE, wide = (columns + TILE - 1) / TILE;
    i64 blocks = (i64)tall * wide * product.s.groups * shares;
    // A whole number of steps for each share.
    I part = ((depth + shares - 1) / shares + DEPTH - 1) / DEPTH * DEPTH;
    int thread = threadIdx.x, across = thread % 16, down = thread / 16;
    for (i64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        I column = (I)(block % wide) * TILE, row = (I)(block / wide % tall) * TILE;
        I group = (I)(block / wide / tall % product.s.groups);
        I share = (I)(block / wide / tall / product.s.groups);
        A sums[EACH][EACH];
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) sums[i][j] = 0;
        I end = (I)min_of(depth, (i64)(share + 1) * part);
        for (I step = share * part; step < end; step += DEPTH) {
            for (int i = 0; i < EACH; i++) {
                int m = i * 16 + down;
                I k = step + across;
                lefts[across][m] =
                    k < end && row + m < rows ? product.left(group, row + m, k) : (A)0;
                int n = Product::RIGHT_ALONG_K ? m : thread % TILE;
                int q = Product::RIGHT_ALONG_K ? across : i * EACH + thread / TILE;
                rights[q][n] = step + q < end && column + n < columns
                                   ? product.right(group, step + q, column + n)
                                   : (A)0;
            }
            __syncthreads();
            for (int k = 0; k < DEPTH; k++) {
                A a[EACH], b[EACH];
                for (int i = 0; i < EACH; i++) {
                    a[i] = lefts[k][i * 16 + down];
                    b[i] = rights[k][i * 16 + across];
                }
                for (int i = 0; i < EACH; i++)
                    for (int j = 0; j < EACH; j++) sums[i][j] += a[i] * b[j];
            }
            __syncthreads();
        }
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) {
                I m = row + i * 16 + down, n = column + j * 16 + across;
                if (m < rows && n < columns) product.put(group, share, m, n, sums[i][j]);
            }
    }
}

#define GEOMETRY                                                                                   \
    i64 images, i64 channels, i64 filters, i64 groups, i64 in_d, i64 in_h, i64 in_w, i64 out_d,    \
        i64 out_h, i64 out_w, i64 kernel_d, i64 kernel_h, i64 kernel_w, i64 stride_d,              \
        i64 stride_h, i64 stride_w, i64 pad_d, i64 pad_h, i64 pad_w, i64 dilation_d,               \
        i64 dilation_h, i64 dilation_w
#define SHAPE                                                                                      \
    {(I)images,                                                                                    \
     (I)(channels / groups),                                                                       \
     (I)(filters / groups),                                                                        \
     (I)groups,                                                                                    \
     {(I)in_d, (I)in_h, (I)in_w},                                                                  \
     {(I)out_d, (I)out_h, (I)out_w},                                                               \
     {(I)kernel_d, (I)kernel_h, (I)kernel_w},                                                      \
     {(I)stride_d, (I)stride_h, (I)stride_w},                                                      \
     {(I)pad_d, (I)pad_h, (I)pad_w},                                                               \
     {(I)dilation_d, (I)dilation_h, (I)dilation_w}}

template <class T, class I>
__global__ void __launch_bounds__(256)
    convolve(const T* x, const T* weight, const T* bias, T* out, GEOMETRY) {
    Forward<T, I> product = {SHAPE, x, weight, bias, out};
    multiply<typename Wide<T>::type, I>(product, (I)1);
}

template <class T, class I>
__global__ void __launch_bounds__(256)
    convolve_to_input(const T* grad, const T* weight, const T* bias, T* out, GEOMETRY) {
    ToInput<T, I> product = {SHAPE, grad, weight, bias, out};
    multiply<typename Wide<T>::type, I>(product, (I)1);
}

template <class T, class I>
__global__ void __launch_bounds__(256)
    convolve_to_weight(const T* grad, const T* x, typename Wide<T>::type* out, i64 shares,
                       GEOMETRY) {
    ToWeight<T, I> product = {SHAPE, grad, x, out};
    multiply<typename Wide<T>::type, I>(product, (I)shares);
}
