#include "clock_model.h"

#include <math.h>

lep_clock_model lep_clock_identity(void) {
    return (lep_clock_model){0};
}

int64_t lep_clock_at(const lep_clock_model *model, int64_t x_ns) {
    int64_t since = x_ns - model->x0_ns;
    return model->y0_ns + since + llround(model->drift * (double)since);
}

static double variance_at(const lep_clock_model *model, double since_ns) {
    return model->variance_ns2 + 2 * since_ns * model->covariance_ns + since_ns * since_ns * model->drift_variance;
}

double lep_clock_deviation_ns(const lep_clock_model *model, int64_t x_ns) {
    return sqrt(fmax(0, variance_at(model, (double)(x_ns - model->x0_ns))));
}

lep_clock_model lep_clock_moved(const lep_clock_model *model, int64_t x_ns) {
    double since_ns = (double)(x_ns - model->x0_ns);
    lep_clock_model moved = *model;
    moved.x0_ns = x_ns;
    moved.y0_ns = lep_clock_at(model, x_ns);
    moved.variance_ns2 = variance_at(model, since_ns);
    moved.covariance_ns = model->covariance_ns + since_ns * model->drift_variance;
    return moved;
}

lep_clock_model lep_clock_joined(const lep_clock_model *inner, const lep_clock_model *outer) {
    lep_clock_model there = lep_clock_moved(outer, inner->y0_ns);
    return (lep_clock_model){
        .x0_ns = inner->x0_ns,
        .y0_ns = there.y0_ns,
        .drift = inner->drift + outer->drift + inner->drift * outer->drift,
        .variance_ns2 = inner->variance_ns2 + there.variance_ns2,
        .drift_variance = inner->drift_variance + outer->drift_variance,
        .covariance_ns = inner->covariance_ns + there.covariance_ns,
        .bound_ns = inner->bound_ns + outer->bound_ns,
    };
}

/* 97.5 % quantile of Student's distribution over that of the normal one: Cornish and Fisher's expansion (Abramowitz
 * and Stegun 26.7.5), below 1 % off from 3 degrees of freedom on; exact values below. */
static double student_factor(int freedom) {
    static const double exact[] = {12.7062, 4.3027, 3.1824};
    const double z = 1.959964;
    if (freedom <= 3)
        return exact[freedom - 1] / z;
    double z2 = z * z, n = freedom;
    double g1 = (z2 + 1) / 4, g2 = ((5 * z2 + 16) * z2 + 3) / 96, g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    return 1 + g1 / n + g2 / (n * n) + g3 / (n * n * n);
}

lep_clock_model lep_clock_fitted(const int64_t *x_ns, const double *offset_ns, const double *deviation_ns,
                                 const double *bound_ns, int points, int64_t resolution_ns,
                                 double drift_variance_before) {
    const double rounding_ns2 =
        (double)resolution_ns * (double)resolution_ns / 24; /* of a difference of two readings */
    double least_bound_ns = bound_ns[0], precision = 0, total = 0, mean_x = 0, mean_y = 0;
    for (int i = 1; i < points; i++)
        least_bound_ns = fmin(least_bound_ns, bound_ns[i]);
#define VARIANCE(i)                                                                                                    \
    (deviation_ns[i] * deviation_ns[i] + (bound_ns[i] - least_bound_ns) * (bound_ns[i] - least_bound_ns) / 3)
    for (int i = 0; i < points; i++)
        precision += 1 / (VARIANCE(i) + rounding_ns2);
    const double common_ns2 = points / precision + rounding_ns2;
#define WEIGHT(i) (1 / (VARIANCE(i) + common_ns2))
#define X(i) ((double)(x_ns[i] - x_ns[0]))
#define Y(i) (offset_ns[i] - offset_ns[0])
    for (int i = 0; i < points; i++) {
        total += WEIGHT(i);
        mean_x += WEIGHT(i) * X(i);
        mean_y += WEIGHT(i) * Y(i);
    }
    mean_x /= total;
    mean_y /= total;
    double sxx = 0, sxy = 0;
    for (int i = 0; i < points; i++) {
        sxx += WEIGHT(i) * (X(i) - mean_x) * (X(i) - mean_x);
        sxy += WEIGHT(i) * (X(i) - mean_x) * (Y(i) - mean_y);
    }
    lep_clock_model model = {
        .x0_ns = x_ns[0] + llround(mean_x),
        .variance_ns2 = points == 1 ? deviation_ns[0] * deviation_ns[0] : 1 / total,
        .drift_variance = drift_variance_before,
        .bound_ns = least_bound_ns,
    };
    if (points > 2 && sxx > 0) {
        double left = 0, factor = student_factor(points - 2);
        model.drift = sxy / sxx;
        for (int i = 0; i < points; i++) {
            double residual = Y(i) - mean_y - model.drift * (X(i) - mean_x);
            left += WEIGHT(i) * residual * residual;
        }
        double scale = fmax(left / (points - 2) * factor * factor, rounding_ns2 / common_ns2);
        model.variance_ns2 = scale / total;
        model.drift_variance = scale / sxx;
    }
#undef VARIANCE
#undef WEIGHT
#undef X
#undef Y
    /* the line at x0, which was rounded to whole nanoseconds: less than 1 ns times the drift */
    model.y0_ns = model.x0_ns + llround(offset_ns[0] + mean_y);
    return model;
}

/* Hypotheses: no clock drifts, or all by independent normal drifts with one standard deviation. */
enum { DRIFTS = 23, HYPOTHESES = 1 + DRIFTS };

static double drift_variance_of(int hypothesis) {
    return hypothesis == 0 ? 0 : 1e-4 * pow(4, 1 - hypothesis); /* of 1 %, and down by factors of 2 */
}

static double prior(int hypothesis) {
    return hypothesis == 0 ? 0.5 : 0.5 / DRIFTS;
}

/* Expectation, less log(n), and variance of the logarithm of a chi squared of n degrees of freedom over n: digamma and
 * trigamma of n / 2, by their recurrences and, from 50 on, their expansions (Abramowitz and Stegun 6.3.18, 6.4.12). */
static void log_chi_squared(int n, double *mean, double *variance) {
    double digamma = 0, trigamma = 0;
    int twice = n;
    for (; twice < 100; twice += 2) {
        digamma -= 2.0 / twice;
        trigamma += 4.0 / ((double)twice * twice);
    }
    double x = twice / 2.0, inverse = 1 / x, square = inverse * inverse;
    digamma += log(x) - inverse / 2 - square * (1.0 / 12 - square * (1.0 / 120 - square / 252));
    trigamma += inverse + square / 2 + square * inverse * (1.0 / 6 - square * (1.0 / 30 - square / 42));
    *mean = digamma - log(n / 2.0);
    *variance = trigamma;
}

/* The variances of errors of alike lines have something in common: `degrees` of freedom of a variance `common`, beside
 * those that each has by itself (Smyth 2004, section 6.2; not more degrees than the other lines have). */
typedef struct {
    double common;
    int degrees;
} moderation;

static double error_variance(const lep_clock_model *line, int freedom) {
    double factor = student_factor(freedom);
    return line->drift_variance / (factor * factor);
}

static moderation moderation_of(lep_clock_model *const *lines, int count, int freedom) {
    if (count < 2)
        return (moderation){0};
    double mean = 0, scatter = 0, expected, variance;
    log_chi_squared(freedom, &expected, &variance);
    for (int i = 0; i < count; i++)
        mean += log(error_variance(lines[i], freedom)) / count;
    for (int i = 0; i < count; i++)
        scatter += pow(log(error_variance(lines[i], freedom)) - mean, 2) / (count - 1);
    double excess = scatter - variance;
    int least = 1, most = count - 1 > 1000000 / freedom ? 1000000 : (count - 1) * freedom;
    double ours;
    log_chi_squared(most, &ours, &variance);
    if (variance > excess)
        least = most;
    for (int high = most; least < high;) { /* the fewest degrees whose variance is at most the excess */
        int middle = least + (high - least) / 2;
        log_chi_squared(middle, &ours, &variance);
        if (variance > excess)
            least = middle + 1;
        else
            high = middle;
    }
    log_chi_squared(least, &ours, &variance);
    return (moderation){.common = exp(mean - expected + ours), .degrees = least};
}

/* Logarithm of the density of Student's distribution, but for sqrt(2 pi), with that scale (a variance). */
static double log_student(double value, double scale, double freedom) {
    double norm = freedom < 50 ? lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom / 2) / 2
                               : (1 / (6 * freedom * freedom) - 1) / (4 * freedom);
    return norm - log(scale) / 2 - (freedom + 1) / 2 * log1p(value * value / scale / freedom);
}

static double moderated(const lep_clock_model *line, int freedom, moderation with) {
    return (with.degrees * with.common + freedom * error_variance(line, freedom)) / (with.degrees + freedom);
}

/* The variance of drifts that is greater with a probability of at most 5 %, given that there are drifts. */
static double greatest_left(const double *weights) {
    double sum = 0, greater = 0;
    for (int h = 1; h < HYPOTHESES; h++)
        sum += weights[h];
    int h = 1;
    while (h < DRIFTS && (greater += weights[h]) <= 0.05 * sum)
        h++;
    return drift_variance_of(h);
}

void lep_clock_shrink(lep_clock_model *const *lines, int count, int freedom) {
    if (count < 1)
        return;
    const moderation with = moderation_of(lines, count, freedom);
    const double factor = student_factor(freedom + with.degrees);
    double weights[HYPOTHESES], greatest = -INFINITY; /* posterior of a hypothesis */
    for (int h = 0; h < HYPOTHESES; h++) {
        weights[h] = log(prior(h));
        for (int i = 0; i < count; i++) {
            double error = moderated(lines[i], freedom, with), ratio = drift_variance_of(h) / error;
            double degrees = (freedom + with.degrees) * (1 + ratio) * (1 + ratio);
            weights[h] += log_student(lines[i]->drift, error * (1 + ratio), degrees);
        }
        greatest = fmax(greatest, weights[h]);
    }
    for (int h = 0; h < HYPOTHESES; h++)
        weights[h] = exp(weights[h] - greatest);
    const double most = greatest_left(weights);
    for (int i = 0; i < count; i++) {
        const double line = lines[i]->drift, error = moderated(lines[i], freedom, with), wide = error * factor * factor;
        double sum = 0, sum_of_shares = 0;
        for (int h = 0; h < HYPOTHESES; h++) {
            double drift = drift_variance_of(h), share = drift / (drift + error);
            double better = lines[i]->variance_ns2 + LEP_CLOCK_HORIZON_NS * LEP_CLOCK_HORIZON_NS * fmin(drift, error);
            sum += weights[h] / better;
            sum_of_shares += weights[h] / better * share;
        }
        lines[i]->drift = line * sum_of_shares / sum;
        double off = line * most / (most + error) - lines[i]->drift;
        lines[i]->drift_variance = most * wide / (most + wide) + off * off;
    }
}
