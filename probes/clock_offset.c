#include "clock_offset.h"

#include <math.h>
#include <stdlib.h>

static const double NORMAL_95 = 1.959964;

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* How many of the lowest values are looked at: a tenth, if that is enough to see how they lie. */
static int lowest(int count) {
    int tenth = count / 10, least = count < 10 ? count : 10;
    return tenth > least ? tenth : least;
}

/* Two readings rounded to the resolution, by up to half of it each. */
static double rounding_ns2(int64_t resolution_ns) {
    return (double)resolution_ns * (double)resolution_ns / 24;
}

static int64_t middle(const lep_clock_exchange *exchange) {
    return exchange->before_ns + (exchange->after_ns - exchange->before_ns) / 2;
}

static double difference(const lep_clock_exchange *exchange) {
    return (double)(exchange->remote_ns - exchange->before_ns) / 2 -
           (double)(exchange->after_ns - exchange->remote_ns) / 2;
}

static double shortest_round_trip(const lep_clock_exchange *exchanges, int count) {
    double shortest = INFINITY;
    for (int i = 0; i < count; i++)
        shortest = fmin(shortest, (double)(exchanges[i].after_ns - exchanges[i].before_ns));
    return shortest;
}

/* By how much the least of `count` values lies above the least possible one, on average: the mean excess of an
 * exponential distribution whose `lowest` values are known (censored; Lawless, Statistical Models and Methods for
 * Lifetime Data, section 4.1), divided by their number. Sorts the values. */
static double excess_of_least(double *values, int count) {
    int known = lowest(count);
    qsort(values, (size_t)count, sizeof *values, compare);
    double sum = (count - known) * (values[known - 1] - values[0]);
    for (int i = 1; i < known; i++)
        sum += values[i] - values[0];
    return known > 1 ? sum / (known - 1) / count : 0;
}

/* Differences from those of the first exchange, which a double holds exactly, without what the drift has made of the
 * offset since then. When the answering clock was read is known to a latency where that one was short: it was soon
 * after the question left, or shortly before the answer came, while the exchange may have waited long for an answering
 * rank that was busy. remote - before ... */
static double there_ns(const lep_clock_exchange *exchanges, int i, double drift) {
    const lep_clock_exchange *one = &exchanges[i], *first = &exchanges[0];
    return (double)((one->remote_ns - one->before_ns) - (first->remote_ns - first->before_ns)) -
           drift * (double)(one->before_ns - first->before_ns);
}

/* ... and after - remote. */
static double back_ns(const lep_clock_exchange *exchanges, int i, double drift) {
    const lep_clock_exchange *one = &exchanges[i], *first = &exchanges[0];
    return (double)((one->after_ns - one->remote_ns) - (first->after_ns - first->remote_ns)) +
           drift * (double)(one->after_ns - first->after_ns);
}

lep_clock_offset lep_offset_by_bounds(const lep_clock_exchange *exchanges, int count, double *scratch,
                                      int64_t resolution_ns, double drift) {
    int there = 0, back = 0;
    for (int i = 1; i < count; i++) {
        if (there_ns(exchanges, i, drift) < there_ns(exchanges, there, drift))
            there = i;
        if (back_ns(exchanges, i, drift) < back_ns(exchanges, back, drift))
            back = i;
    }
    for (int i = 0; i < count; i++)
        scratch[i] = there_ns(exchanges, i, drift);
    double excess = excess_of_least(scratch, count) / 2;
    for (int i = 0; i < count; i++)
        scratch[i] = back_ns(exchanges, i, drift);
    excess += excess_of_least(scratch, count) / 2;
    /* Half the difference of two exponential errors exceeds excess / 2 * log(20) in 5 of 100 cases; with the excess
     * estimated from 2 (known - 1) spacings, the quantile is that of a ratio of gamma variables. */
    int freedom = 2 * (lowest(count) - 1);
    double quantile = freedom > 0 ? freedom * (pow(20, 1.0 / freedom) - 1) / 2 * excess : 0;
    /* The answering clock was read half a round trip after the one question left, and before the other answer came; in
     * between, what the drift makes of the one difference is what it takes from the other. */
    double bound = shortest_round_trip(exchanges, count) / 2;
    int64_t asked_ns = exchanges[there].before_ns, answered_ns = exchanges[back].after_ns;
    int64_t to = exchanges[there].remote_ns - asked_ns, fro = answered_ns - exchanges[back].remote_ns;
    return (lep_clock_offset){
        .x_ns = asked_ns + (answered_ns - asked_ns) / 2,
        .offset_ns = ((double)to - (double)fro) / 2,
        .deviation_ns = sqrt(pow(quantile / NORMAL_95, 2) + rounding_ns2(resolution_ns)),
        .bound_ns = bound,
    };
}

lep_clock_offset lep_offset_by_shortest(const lep_clock_exchange *exchanges, int count, double *scratch,
                                        int64_t resolution_ns) {
    int best = 0;
    for (int i = 0; i < count; i++) {
        scratch[i] = (double)(exchanges[i].after_ns - exchanges[i].before_ns);
        if (scratch[i] < scratch[best])
            best = i;
    }
    int known = lowest(count);
    double bound = scratch[best] / 2, unit = 0;
    qsort(scratch, (size_t)count, sizeof *scratch, compare);
    /* The i-th shortest lies sqrt(U) units above the least possible, U of a gamma distribution with shape i. */
    if (known > 1)
        unit = (scratch[known - 1] - scratch[0]) / (exp(lgamma(known + 0.5) - lgamma(known)) - tgamma(1.5));
    /* 95 of 100 errors are below 1.33 / 2 units where ten spacings are known: by simulation; 1.18 / 2 if the unit were
     * known. */
    const lep_clock_exchange *exchange = &exchanges[best];
    return (lep_clock_offset){
        .x_ns = middle(exchange),
        .offset_ns = difference(exchange),
        .deviation_ns = sqrt(pow(1.33 / 2 * unit / NORMAL_95, 2) + rounding_ns2(resolution_ns)),
        .bound_ns = bound,
    };
}

lep_clock_offset lep_offset_by_median(const lep_clock_exchange *exchanges, int count, double *scratch,
                                      int64_t resolution_ns) {
    for (int i = 0; i < count; i++)
        scratch[i] = difference(&exchanges[i]);
    qsort(scratch, (size_t)count, sizeof *scratch, compare);
    double median = scratch[(count - 1) / 2];
    int chosen = 0;
    while (difference(&exchanges[chosen]) != median)
        chosen++;
    /* Between the order statistics sqrt(count) / 2 places away lie two standard deviations of the median. */
    int away = (int)ceil(sqrt(count) / 2), low = (count - 1) / 2 - away, high = (count - 1) / 2 + away;
    double width = scratch[high < count ? high : count - 1] - scratch[low > 0 ? low : 0];
    return (lep_clock_offset){
        .x_ns = middle(&exchanges[chosen]),
        .offset_ns = median,
        .deviation_ns = sqrt(width * width / 4 + rounding_ns2(resolution_ns)),
        .bound_ns = shortest_round_trip(exchanges, count) / 2,
    };
}
