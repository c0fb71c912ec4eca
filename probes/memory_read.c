#include "memory_read.h"

typedef uint64_t two_words __attribute__((vector_size(16), may_alias));
typedef uint64_t four_words __attribute__((vector_size(32), may_alias));
typedef uint32_t half_word __attribute__((may_alias));
typedef uint64_t one_word __attribute__((may_alias));

/* The compiler may neither join elements into wider ones nor leave out a pass: width and unrolling are those of the
 * design, so each sum must be in a register of its own width after each addition. */
#if defined(__x86_64__)
#define IN_VECTOR "+x"
#define WITH_AVX2 __attribute__((target("avx2")))
#elif defined(__aarch64__)
#define IN_VECTOR "+w"
#else
#define IN_VECTOR "+m"
#endif
#define KEEP_INTEGER(sum) __asm__ volatile("" : "+r"(sum))
#define KEEP_VECTOR(sum) __asm__ volatile("" : IN_VECTOR(sum))

#define ADD(type, keep, sum, place)                                                                                    \
    sum += *(const type *)(place);                                                                                     \
    keep(sum)

#define READ_ONE(name, type, keep, fold, attributes)                                                                   \
    attributes static uint64_t name(const void *buffer, size_t elements, size_t step, size_t passes) {                 \
        type sum = {0};                                                                                                \
        for (size_t pass = 0; pass < passes; pass++) {                                                                 \
            const char *place = buffer;                                                                                \
            for (size_t i = 0; i < elements; i++, place += step) {                                                     \
                ADD(type, keep, sum, place);                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        return fold(sum);                                                                                              \
    }

/* Eight sums: with one, each addition would wait for the one before. */
#define READ_EIGHT(name, type, keep, fold, attributes)                                                                 \
    attributes static uint64_t name(const void *buffer, size_t elements, size_t step, size_t passes) {                 \
        type s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};                           \
        for (size_t pass = 0; pass < passes; pass++) {                                                                 \
            const char *place = buffer;                                                                                \
            size_t i = 0;                                                                                              \
            for (; i + 8 <= elements; i += 8, place += 8 * step) {                                                     \
                ADD(type, keep, s0, place);                                                                            \
                ADD(type, keep, s1, place + step);                                                                     \
                ADD(type, keep, s2, place + 2 * step);                                                                 \
                ADD(type, keep, s3, place + 3 * step);                                                                 \
                ADD(type, keep, s4, place + 4 * step);                                                                 \
                ADD(type, keep, s5, place + 5 * step);                                                                 \
                ADD(type, keep, s6, place + 6 * step);                                                                 \
                ADD(type, keep, s7, place + 7 * step);                                                                 \
            }                                                                                                          \
            for (; i < elements; i++, place += step) {                                                                 \
                ADD(type, keep, s0, place);                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        type sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;                                                              \
        return fold(sum);                                                                                              \
    }

#define FOLD_INTEGER(sum) (uint64_t)(sum)
#define FOLD_TWO(sum) ((sum)[0] + (sum)[1])
#define FOLD_FOUR(sum) ((sum)[0] + (sum)[1] + (sum)[2] + (sum)[3])

READ_ONE(read_4_1, half_word, KEEP_INTEGER, FOLD_INTEGER, )
READ_EIGHT(read_4_8, half_word, KEEP_INTEGER, FOLD_INTEGER, )
READ_ONE(read_8_1, one_word, KEEP_INTEGER, FOLD_INTEGER, )
READ_EIGHT(read_8_8, one_word, KEEP_INTEGER, FOLD_INTEGER, )
READ_ONE(read_16_1, two_words, KEEP_VECTOR, FOLD_TWO, )
READ_EIGHT(read_16_8, two_words, KEEP_VECTOR, FOLD_TWO, )
#ifdef WITH_AVX2
READ_ONE(read_32_1, four_words, KEEP_VECTOR, FOLD_FOUR, WITH_AVX2)
READ_EIGHT(read_32_8, four_words, KEEP_VECTOR, FOLD_FOUR, WITH_AVX2)
#endif

lep_read_pass *lep_read_of(size_t element_bytes, int unroll) {
    if (unroll != 1 && unroll != 8)
        return NULL;
    switch (element_bytes) {
    case 4:
        return unroll == 1 ? read_4_1 : read_4_8;
    case 8:
        return unroll == 1 ? read_8_1 : read_8_8;
    case 16:
        return unroll == 1 ? read_16_1 : read_16_8;
#ifdef WITH_AVX2
    case 32:
        if (__builtin_cpu_supports("avx2"))
            return unroll == 1 ? read_32_1 : read_32_8;
        return NULL;
#endif
    default:
        return NULL;
    }
}
