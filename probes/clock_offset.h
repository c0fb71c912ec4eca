/* The offset between two clocks, from exchanges of messages between their ranks.
 *
 * The asking rank notes its clock, sends, gets back what the answering rank's clock showed in between, and notes its
 * clock again. With latencies f and g of the two messages and the offset o (answering - asking),
 *
 *     remote - before = o + f    and    after - remote = g - o,
 *
 * so that remote - (before + after) / 2 = o + (f - g) / 2. Latencies scatter upwards from a least one: what scatters
 * is in the deviation that each estimate carries, what is left of f - g when both are least is in nobody's reach
 * (bound_ns, half of the shortest round trip).
 */
#ifndef LEPAUTE_CLOCK_OFFSET_H
#define LEPAUTE_CLOCK_OFFSET_H

#include <stdint.h>

typedef struct {
    int64_t before_ns, remote_ns, after_ns;
} lep_clock_exchange;

typedef struct {
    int64_t x_ns;                   /* of the asking clock, when the offset was this */
    double offset_ns, deviation_ns; /* 1.96 deviations hold it in 95 of 100 cases, but for the bound */
    double bound_ns;
} lep_clock_offset;

/* Each takes the exchanges, `scratch` for as many numbers, and the resolution of the clocks. At least one exchange. */

/* The least latency of each direction by itself (SKaMPI; Hunold and Carpen-Amarie, algorithm 7). Its deviation supposes
 * that the lowest tenth of latencies lies above the least one as exponential waiting times do: their mean excess over
 * it, censored there, divided by the number of exchanges, is by what the least one seen is too high. It also supposes
 * that the offset stays the same meanwhile: a hundred exchanges of 10 us between clocks that drift apart by 100 ppm
 * change it by 100 ns, and the least latency errs by 10. Where `drift` (seconds that the answering clock gains in one
 * of the asking clock) is known, it is taken out of the differences before the least are looked for; else it is 0. */
lep_clock_offset lep_offset_by_bounds(const lep_clock_exchange *exchanges, int count, double *scratch,
                                      int64_t resolution_ns, double drift);

/* The exchange with the shortest round trip (Netgauge; the same, algorithm 12, and Cristian 1989). The excess of a
 * shortest round trip is divided at random between the directions; its size follows from the spacing of the tenth that
 * is shortest, whose distribution rises as the square for exponential latencies. */
lep_clock_offset lep_offset_by_shortest(const lep_clock_exchange *exchanges, int count, double *scratch,
                                        int64_t resolution_ns);

/* The exchange with the median difference (Jones and Koenig; the same, algorithm 15). Here each exchange counts from
 * the middle of its own round trip; half a mean round trip, as published, adds the skewness of latencies to all
 * differences. Deviation by the order statistics around the median. */
lep_clock_offset lep_offset_by_median(const lep_clock_exchange *exchanges, int count, double *scratch,
                                      int64_t resolution_ns);

#endif
