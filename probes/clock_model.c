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
