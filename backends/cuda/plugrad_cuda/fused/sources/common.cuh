// What all kernels share: element types, accumulators, limits, reductions.
//
// No header of CUDA's is used, so that NVRTC needs no include path, and a C++17 compiler for the
// host can take the same text with an emulation of the built-in variables and functions.
// Kernels take pointers, long long and double only: what CuPy packs Python's ints and floats into.

typedef long long i64;

// A kernel with one row in a block: of up to 1024 threads, whose registers must suffice for all.
#define ROW_KERNEL __global__ void __launch_bounds__(1024)

// 16-bit floats are storage only: they are computed with in float.
struct half_t {
    unsigned short bits;
};
struct bfloat16_t {
    unsigned short bits;
};

#ifdef __CUDACC__
// On the host the emulation defines these.
__device__ inline float bits_to_float(unsigned bits) { return __uint_as_float(bits); }
__device__ inline unsigned float_to_bits(float value) { return __float_as_uint(value); }
__device__ inline float half_value(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ inline unsigned short half_bits(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#endif

__device__ inline float widen(half_t a) { return half_value(a.bits); }
__device__ inline half_t to_half(float value) { return {half_bits(value)}; }
__device__ inline float widen(bfloat16_t a) { return bits_to_float((unsigned)a.bits << 16); }
__device__ inline bfloat16_t to_bfloat16(float value) {
    unsigned bits = float_to_bits(value);
    if (value != value) return {(unsigned short)((bits >> 16) | 0x40u)};
    // Half of the last place that stays, less one for even results: round to nearest even.
    return {(unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
__device__ inline float widen(float a) { return a; }
__device__ inline double widen(double a) { return a; }

// Accumulator of a type.
template <class T> struct Wide { typedef float type; };
template <> struct Wide<double> { typedef double type; };

template <class T> struct Narrow;
template <> struct Narrow<float> {
    __device__ static float from(float a) { return a; }
};
template <> struct Narrow<double> {
    __device__ static double from(double a) { return a; }
};
template <> struct Narrow<half_t> {
    __device__ static half_t from(float a) { return to_half(a); }
};
template <> struct Narrow<bfloat16_t> {
    __device__ static bfloat16_t from(float a) { return to_bfloat16(a); }
};

template <class T> __device__ inline T narrow(typename Wide<T>::type a) {
    return Narrow<T>::from(a);
}

template <class A> __device__ inline A infinity() { return (A)bits_to_float(0x7f800000u); }

__device__ inline i64 min_of(i64 a, i64 b) { return a < b ? a : b; }
__device__ inline i64 max_of(i64 a, i64 b) { return a > b ? a : b; }

// Reductions over threadIdx.x; every thread gets the result. A row of 32 threads needs no shared
// memory, so a block may then hold several rows. Otherwise a block is one row of up to 1024.
template <class A> __device__ A warp_sum(A value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

template <class A> __device__ A row_sum(A value) {
    value = warp_sum(value);
    if (blockDim.x == 32) return value;
    __shared__ A parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    value = warp_sum(lane < blockDim.x / 32 ? parts[lane] : (A)0);
    // The next reduction must not overwrite what a slower warp has still to read.
    __syncthreads();
    return value;
}

// This thread's number among all, and how many there are: a loop over elements goes
// `for (i64 i = thread_number(); i < count; i += thread_count())`.
__device__ inline i64 thread_number() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 thread_count() { return (i64)gridDim.x * blockDim.x; }
