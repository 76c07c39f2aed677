// The part of CUDA C++ that the fused kernels use, on the host.
//
// Blocks run one after another. The threads of a block are fibers, which switch at barriers and
// shuffles only; in which order they go on differs from phase to phase, so that a barrier that is
// missing shows. Errors that hardware leaves undefined end the launch with a message: a barrier
// or shuffle that not all threads reach, an access outside of an array (arrays lie against pages
// that cannot be touched), an index that a kernel traps on.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

using std::exp;
using std::log;
using std::sqrt;

struct Index {
    int x, y, z;
};

namespace emulation {

enum State { READY, AT_BARRIER, AT_SHUFFLE, DONE };

struct Fiber {
    ucontext_t start;
    jmp_buf at;
    char* stack = nullptr;
    bool fresh = true;
};

struct Thread {
    Index index;
    State state;
    int fiber;
};

inline const size_t STACK = 1 << 16;

inline Index block_index, block_size, grid_size;
inline std::vector<Thread> threads;
inline std::vector<Fiber> fibers;
inline std::vector<int> idle;
inline std::vector<uint64_t> exchanged;
inline int current;
inline jmp_buf scheduler;
inline sigjmp_buf failure;
inline char message[256];
inline void (*body)(void*);
inline void* body_data;
inline unsigned phase;

[[noreturn]] inline void fail(const char* text) {
    snprintf(message, sizeof message, "%s (block %d, thread %d, %d)", text, block_index.x,
             threads[current].index.x, threads[current].index.y);
    siglongjmp(failure, 1);
}

inline void on_signal(int) { fail("access outside of an array"); }

// A fiber runs threads from start to end, one after another if they never wait.
inline void fiber_main() {
    for (;;) {
        body(body_data);
        threads[current].state = DONE;
        idle.push_back(threads[current].fiber);
        int own = threads[current].fiber;
        if (_setjmp(fibers[own].at) == 0) _longjmp(scheduler, 1);
    }
}

inline void wait(State state) {
    Thread& thread = threads[current];
    thread.state = state;
    if (_setjmp(fibers[thread.fiber].at) == 0) _longjmp(scheduler, 1);
}

inline int free_fiber() {
    if (idle.empty()) {
        fibers.emplace_back();
        Fiber& fiber = fibers.back();
        fiber.stack = (char*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        return (int)fibers.size() - 1;
    }
    int found = idle.back();
    idle.pop_back();
    return found;
}

inline void resume(int number) {
    current = number;
    Thread& thread = threads[number];
    if (thread.fiber < 0) thread.fiber = free_fiber();
    Fiber& fiber = fibers[thread.fiber];
    if (_setjmp(scheduler) != 0) return;
    if (!fiber.fresh) _longjmp(fiber.at, 1);
    fiber.fresh = false;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack;
    fiber.start.uc_stack.ss_size = STACK;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, fiber_main, 0);
    setcontext(&fiber.start);
}

inline bool release_warps() {
    bool released = false;
    for (size_t first = 0; first < threads.size(); first += 32) {
        int waiting = 0;
        for (size_t i = first; i < first + 32; i++) waiting += threads[i].state == AT_SHUFFLE;
        if (waiting == 32) {
            for (size_t i = first; i < first + 32; i++) threads[i].state = READY;
            released = true;
        } else if (waiting > 0) {
            current = (int)first;
            fail("a shuffle that not all threads of the warp reach");
        }
    }
    return released;
}

inline void run_block() {
    size_t count = threads.size();
    for (;;) {
        // Another order in every phase: forward, backward, from the middle.
        phase++;
        size_t offset = phase % 3 == 2 ? count / 2 : 0;
        for (size_t i = 0; i < count; i++) {
            size_t number = (i + offset) % count;
            if (phase % 2) number = count - 1 - number;
            if (threads[number].state == READY) resume((int)number);
        }
        bool shuffles = false;
        size_t done = 0, waiting = 0;
        for (const Thread& thread : threads) {
            shuffles |= thread.state == AT_SHUFFLE;
            done += thread.state == DONE;
            waiting += thread.state == AT_BARRIER;
        }
        if (done == count) return;
        if (shuffles) {
            release_warps();
        } else if (waiting == count) {
            for (Thread& thread : threads) thread.state = READY;
        } else {
            fail("a barrier that not all threads of the block reach");
        }
    }
}

// 0 if all went well; `message` says what did not.
inline int run(int grid, int block_x, int block_y, void (*function)(void*), void* data) {
    struct sigaction action = {}, old_segv, old_bus;
    action.sa_handler = on_signal;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    body = function;
    body_data = data;
    grid_size = {grid, 1, 1};
    block_size = {block_x, block_y, 1};
    int status = 0;
    if (sigsetjmp(failure, 1) == 0) {
        if (block_x * block_y % 32 != 0) {
            threads.assign(1, {});
            current = 0;
            fail("a block is no whole number of warps");
        }
        exchanged.assign((size_t)block_x * block_y, 0);
        for (int block = 0; block < grid; block++) {
            block_index = {block, 0, 0};
            threads.clear();
            for (int y = 0; y < block_y; y++)
                for (int x = 0; x < block_x; x++) threads.push_back({{x, y, 0}, READY, -1});
            run_block();
        }
    } else {
        status = 1;
        // What waited on these stacks is given up.
        for (Fiber& fiber : fibers) munmap(fiber.stack, STACK);
        fibers.clear();
        idle.clear();
    }
    sigaction(SIGSEGV, &old_segv, nullptr);
    sigaction(SIGBUS, &old_bus, nullptr);
    return status;
}

// Calls a kernel with arguments from memory, each of which is read as its parameter's type.
template <class... Parameters> struct Call {
    void (*kernel)(Parameters...);
    void** arguments;

    template <size_t... I> void with(std::index_sequence<I...>) const {
        kernel(*(Parameters*)arguments[I]...);
    }
    static void thread(void* self) {
        ((const Call*)self)->with(std::index_sequence_for<Parameters...>());
    }
};

template <class... Parameters>
int launch(void (*kernel)(Parameters...), int count, int grid, int block_x, int block_y,
           void** arguments) {
    if (count != (int)sizeof...(Parameters)) {
        snprintf(message, sizeof message, "%d arguments for %d parameters", count,
                 (int)sizeof...(Parameters));
        return 1;
    }
    Call<Parameters...> call = {kernel, arguments};
    return run(grid, block_x, block_y, Call<Parameters...>::thread, &call);
}

}  // namespace emulation

#define threadIdx (emulation::threads[emulation::current].index)
#define blockIdx emulation::block_index
#define blockDim emulation::block_size
#define gridDim emulation::grid_size

inline void __syncthreads() { emulation::wait(emulation::AT_BARRIER); }

[[noreturn]] inline void __trap() { emulation::fail("trap"); }

template <class V> V __shfl_xor_sync(unsigned mask, V value, int lanes) {
    int own = emulation::current;
    if (mask != 0xffffffffu) emulation::fail("a shuffle of a part of a warp");
    memcpy(&emulation::exchanged[own], &value, sizeof value);
    emulation::wait(emulation::AT_SHUFFLE);
    memcpy(&value, &emulation::exchanged[own ^ lanes], sizeof value);
    emulation::wait(emulation::AT_SHUFFLE);
    return value;
}

template <class V> V atomicAdd(V* at, V value) {
    V old = *at;
    *at = old + value;
    return old;
}

inline float bits_to_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline unsigned float_to_bits(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float half_value(unsigned short bits) {
    unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    if (exponent == 31) return bits_to_float(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) return bits_to_float(sign | float_to_bits((float)fraction * 0x1p-24f));
    return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
}

inline unsigned short half_bits(float value) {
    unsigned bits = float_to_bits(value), sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return 0x7fffu;
    // From half of the step above the largest number on, it is infinite.
    if (bits >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
    // Subnormal: the addition rounds at the place of 2 ** -24.
    if (bits < 0x38800000u)
        return (unsigned short)(sign | (float_to_bits(bits_to_float(bits) + 0.5f) - 0x3f000000u));
    return (unsigned short)(sign | ((bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13));
}
