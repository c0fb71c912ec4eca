/* What a processor forgets while a program waits by reading a clock: no MPI, no library.
 *
 *   waiting_rank CALLS       CSV on standard output: task,wait_us,call,duration_ns
 *
 * Two processes, each pinned to a processor of its own. A call waits, then does one task that it has done CALLS times:
 *   branches : 200 times three branches whose outcomes are random and the same in every call
 *   functions: 64 functions by pointer, always in the same order
 *   lines    : reads 128 cache lines of its own, each after the one before
 *   flags    : one message of a cache line there and back between the processes
 * The first two live on what the processor has learned of the code, the others on data in its caches.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BRANCHES = 200, FUNCTIONS = 64, LINES = 128, LINE = 64, WAITS = 7 };

static const int64_t waits_us[WAITS] = {2, 20, 100, 200, 500, 1000, 3000};
static unsigned char outcomes[BRANCHES];
static volatile char lines[LINES * LINE * 3];
static volatile uint64_t sums[4];

typedef struct {
    _Alignas(256) _Atomic int64_t value;
} flag;

typedef struct {
    flag ready, start_ns, there, back;
} shared_flags;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_until(int64_t moment_ns) {
    while (now_ns() < moment_ns) {
    }
}

static void take_branches(void) {
    uint64_t sum = 0;
    for (int i = 0; i < BRANCHES; i++) {
        if (outcomes[i] & 1)
            sum += (uint64_t)i * 3;
        else
            sum ^= (uint64_t)i;
        if (outcomes[i] & 2)
            sums[0] += sum;
        else
            sums[1] ^= sum;
        if (outcomes[i] & 4)
            sums[2] += (uint64_t)i;
    }
}

/* The assertion only takes the semicolon. */
#define ONE(n)                                                                                                         \
    __attribute__((noinline)) static uint64_t function_##n(uint64_t x) {                                               \
        if (x & (1U << (n % 8)))                                                                                       \
            sums[0] += x * n;                                                                                          \
        else                                                                                                           \
            sums[1] ^= x + n;                                                                                          \
        return x * 6364136223846793005U + n;                                                                           \
    }                                                                                                                  \
    _Static_assert(n > 0, "")
#define EIGHT(n)                                                                                                       \
    ONE(n##0);                                                                                                         \
    ONE(n##1);                                                                                                         \
    ONE(n##2);                                                                                                         \
    ONE(n##3);                                                                                                         \
    ONE(n##4);                                                                                                         \
    ONE(n##5);                                                                                                         \
    ONE(n##6);                                                                                                         \
    ONE(n##7)
EIGHT(1);
EIGHT(2);
EIGHT(3);
EIGHT(4);
EIGHT(5);
EIGHT(6);
EIGHT(7);
EIGHT(8);
#define NAMES(n)                                                                                                       \
    function_##n##0, function_##n##1, function_##n##2, function_##n##3, function_##n##4, function_##n##5,              \
        function_##n##6, function_##n##7
static uint64_t (*const functions[FUNCTIONS])(uint64_t) = {NAMES(1), NAMES(2), NAMES(3), NAMES(4),
                                                           NAMES(5), NAMES(6), NAMES(7), NAMES(8)};

static void call_functions(void) {
    uint64_t value = 12345;
    for (int i = 0; i < FUNCTIONS; i++)
        value = functions[i](value);
    sums[3] += value;
}

/* The place of each line follows from the one before (all are 0), so that no two are read at once. */
static void read_lines(void) {
    int place = 0;
    for (int i = 0; i < LINES; i++)
        place = (i * 7 % LINES + lines[place]) * LINE * 3;
    sums[3] += (uint64_t)place;
}

static void pin(int number) {
    cpu_set_t allowed, one;
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == number)
            CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        fprintf(stderr, "waiting_rank: needs two processors\n");
        exit(2);
    }
}

static void alone(const char* name, void (*task)(void), int calls, int64_t* took_ns) {
    for (int wait = 0; wait < WAITS; wait++) {
        for (int call = -calls / 10; call < calls; call++) {
            wait_until(now_ns() + 1000 * waits_us[wait]);
            int64_t began_ns = now_ns();
            task();
            if (call >= 0)
                took_ns[call] = now_ns() - began_ns;
        }
        for (int call = 0; call < calls; call++)
            printf("%s,%ld,%d,%ld\n", name, (long)waits_us[wait], call, (long)took_ns[call]);
    }
}

/* Both wait for the same moment; process 0 keeps the times. */
static void exchange(int process, shared_flags* flags, int calls, int64_t* took_ns) {
    int64_t turn = 0;
    for (int wait = 0; wait < WAITS; wait++) {
        for (int call = -calls / 10; call < calls; call++) {
            turn++;
            if (process == 0) {
                flags->start_ns.value = now_ns() + 1000 * waits_us[wait] + 1000;
                flags->ready.value = turn;
            } else {
                while (flags->ready.value != turn) {
                }
            }
            wait_until(flags->start_ns.value);
            int64_t began_ns = now_ns();
            if (process == 0) {
                flags->there.value = turn;
                while (flags->back.value != turn) {
                }
                if (call >= 0)
                    took_ns[call] = now_ns() - began_ns;
            } else {
                while (flags->there.value != turn) {
                }
                flags->back.value = turn;
            }
        }
        for (int call = 0; process == 0 && call < calls; call++)
            printf("flags,%ld,%d,%ld\n", (long)waits_us[wait], call, (long)took_ns[call]);
    }
}

int main(int count, char** words) {
    int calls = count == 2 ? atoi(words[1]) : 0;
    if (calls < 10 || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        fprintf(stderr, "usage: waiting_rank CALLS (10 or more), on two processors\n");
        return 2;
    }
    for (int i = 0; i < BRANCHES; i++)
        outcomes[i] = (unsigned char)(rand() >> 5);
    shared_flags* flags = mmap(NULL, sizeof *flags, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t* took_ns = calloc((size_t)calls, sizeof *took_ns);
    if (flags == MAP_FAILED || took_ns == NULL)
        return 2;
    printf("task,wait_us,call,duration_ns\n");
    fflush(stdout);
    pid_t other = fork();
    pin(other == 0);
    exchange(other == 0, flags, calls, took_ns);
    if (other == 0)
        _exit(0);
    waitpid(other, NULL, 0);
    alone("branches", take_branches, calls, took_ns);
    alone("functions", call_functions, calls, took_ns);
    alone("lines", read_lines, calls, took_ns);
    return 0;
}
