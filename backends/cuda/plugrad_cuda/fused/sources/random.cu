// Random bits by Philox 4x32-10: words that depend on a seed, the number of the draw and their
// position alone, so that threads need no state (Salmon et al., Parallel random numbers: as easy as
// 1, 2, 3, SC 2011).
#include "common.cuh"

typedef unsigned long long u64;

// One round for half of the counter: the product's high and low words.
__device__ inline void philox_product(unsigned factor, unsigned word, unsigned* high,
                                      unsigned* low) {
    u64 product = (u64)factor * word;
    *high = (unsigned)(product >> 32);
    *low = (unsigned)product;
}

__device__ inline void philox(u64 seed, u64 draw, u64 block, unsigned* out) {
    unsigned a = (unsigned)block, b = (unsigned)(block >> 32);
    unsigned c = (unsigned)draw, d = (unsigned)(draw >> 32);
    unsigned key = (unsigned)seed, other = (unsigned)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        unsigned high0, low0, high1, low1;
        philox_product(0xD2511F53u, a, &high0, &low0);
        philox_product(0xCD9E8D57u, c, &high1, &low1);
        a = high1 ^ b ^ key;
        b = low1;
        c = high0 ^ d ^ other;
        d = low0;
        key += 0x9E3779B9u;
        other += 0xBB67AE85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

// count words; `later`, if it is no null pointer, is added to the number of the draw: a graph that
// is replayed finds there where it is to go on.
__global__ void random_words(unsigned* out, i64 count, i64 seed, i64 draw, const i64* later) {
    u64 number = (u64)draw + (later ? (u64)*later : 0);
    i64 blocks = (count + 3) / 4;
    i64 step = (i64)gridDim.x * blockDim.x;
    for (i64 block = (i64)blockIdx.x * blockDim.x + threadIdx.x; block < blocks; block += step) {
        unsigned words[4];
        philox((u64)seed, number, (u64)block, words);
        for (int i = 0; i < 4 && block * 4 + i < count; ++i) out[block * 4 + i] = words[i];
    }
}
