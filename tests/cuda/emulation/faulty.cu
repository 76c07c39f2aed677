// Kernels with the errors that the emulation has to find, and conversions to be looked at.

__global__ void reads_behind(const float* x, float* out, i64 count) {
    if (threadIdx.x == 0) out[0] = x[count];
}

__global__ void writes_behind(float* out, i64 count) {
    if (threadIdx.x == 0) out[count] = 1;
}

__global__ void writes_in_front(float* out, i64 count) {
    if (threadIdx.x == 0) out[-1] = 1;
}

// Every thread reads what its neighbour wrote. Without a barrier some read too early.
template <int BARRIER> __global__ void neighbours(i64* out) {
    __shared__ i64 shared[64];
    shared[threadIdx.x] = -1;
    __syncthreads();
    shared[threadIdx.x] = threadIdx.x;
    if (BARRIER) __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
}

__global__ void half_of_the_barrier(float* out) {
    if (threadIdx.x < 32) __syncthreads();
    out[threadIdx.x] = 0;
}

__global__ void half_of_the_shuffle(float* out) {
    float value = 1;
    if (threadIdx.x < 16) value = __shfl_xor_sync(0xffffffffu, value, 1);
    out[threadIdx.x] = value;
}

__global__ void writes_nothing(float* out) {}

__global__ void lanes(i64* out) {
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, (i64)threadIdx.x, 5);
}

template <class T> __global__ void to_float(const T* x, float* out, i64 count) {
    for (i64 i = thread_number(); i < count; i += thread_count()) out[i] = widen(x[i]);
}

template <class T> __global__ void from_float(const float* x, T* out, i64 count) {
    for (i64 i = thread_number(); i < count; i += thread_count()) out[i] = narrow<T>(x[i]);
}
