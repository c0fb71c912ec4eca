/* Affine models of one clock by another, their uncertainty, and how two of them are joined.
 *
 * A model maps a reading x of a rank's clock to the time y that a reference clock shows at that moment:
 *
 *     y = y0 + (1 + b) (x - x0),
 *
 * b being the drift of the reference against the rank's clock. x, x0, y0 are nanoseconds; they are integers, since the
 * clock of a machine that has run for months has more nanoseconds than a double has digits.
 *
 * Joining. Rank 3 knows rank 2's clock, y2 = f(x) with (x0, y0, b), and rank 2 knows rank 1's, y1 = g(y2) with
 * (u0, v0, c). Then y1 = g(f(x)), and since f(x) = f(x0) + (1 + b) (x - x0),
 *
 *     g(f(x)) = g(y0) + (1 + c) (1 + b) (x - x0):
 *
 * the joined model has the origin (x0, g(y0)) and the drift b + c + b c. Nothing is neglected, and no origin has to be
 * that of another rank. (Hunold and Carpen-Amarie, "MPI Benchmarking Revisited", give in equation 1 the drift
 * s + s' - s s' for differences local minus reference of which each is a function of the reference's time; their
 * algorithm 4 takes the intercept from the other of the two models, and its differences are functions of the local
 * time. Models of time by time, instead of differences, leave no such choice.)
 *
 * Errors. The estimate of y at x is wrong by e + d (x - x0), e and d being the errors of y0 and b, of zero mean and
 * with the variances and covariance of the model. In the joined model the error at x is g's at f(x) and, times 1 + c,
 * f's at x. With D = y0 - u0, and c neglected beside 1 in the errors (drifts are below 1e-3),
 *
 *     variance of e:    var_e + var_e' + 2 D cov' + D^2 var_d'
 *     variance of d:    var_d + var_d'
 *     covariance:       cov + cov' + D var_d'.
 *
 * A difference between the latencies of the two directions of an exchange moves an offset by half of it, and no
 * exchange shows it: bound_ns is the greatest such error, half of the shortest round trip. Bounds add up.
 */
#ifndef LEPAUTE_CLOCK_MODEL_H
#define LEPAUTE_CLOCK_MODEL_H

#include <stdint.h>

typedef struct {
    int64_t x0_ns, y0_ns;
    double drift;          /* b: seconds that the reference gains in a second of this clock */
    double variance_ns2;   /* of y0 */
    double drift_variance; /* of b */
    double covariance_ns;  /* of y0 and b */
    double bound_ns;       /* greatest error by asymmetric latencies */
} lep_clock_model;

/* The clock by itself. */
lep_clock_model lep_clock_identity(void);

/* The reference's time, ns, when this clock shows x_ns. */
int64_t lep_clock_at(const lep_clock_model *model, int64_t x_ns);

/* Standard deviation of that, ns, without the bound. */
double lep_clock_deviation_ns(const lep_clock_model *model, int64_t x_ns);

/* `outer` maps the times that `inner` gives: the model of the two. */
lep_clock_model lep_clock_joined(const lep_clock_model *inner, const lep_clock_model *outer);

/* The model with the origin moved to x_ns: the same times, variances and covariances there. */
lep_clock_model lep_clock_moved(const lep_clock_model *model, int64_t x_ns);

/* An offset y - x seen at several readings, each with a deviation and a bound of its own: the least-squares line
 * through them. What is left of the bound of a point beyond the least of all bounds is time that its messages have
 * waited for somebody, in one direction or the other: an error spread evenly up to there, which adds a third of its
 * square to the variance of the point. A point has the weight 1 / (its variance + m), m being the harmonic mean of all
 * variances: deviations of few exchanges are known roughly, so that points which are about equally good count about
 * equally, while those of a moment in which nobody answered for long count little. The variances come from the scatter
 * of the points, not below that of clocks read to `resolution_ns`, and are widened for the few points that it is
 * estimated from: 1.96 standard deviations are the 97.5 % quantile of Student's distribution. Fewer than three points
 * have no scatter: an offset alone, whose drift has the variance `drift_variance_before`. */
lep_clock_model lep_clock_fitted(const int64_t *x_ns, const double *offset_ns, const double *deviation_ns,
                                 const double *bound_ns, int points, int64_t resolution_ns,
                                 double drift_variance_before);

/* Takes the drifts of the lines of `count` alike clocks, each from freedom + 2 points with y0 at x0 independent of it,
 * towards 0, by empirical Bayes: as far as all of them together say that they are errors. The squared error
 * LEP_CLOCK_HORIZON_NS later counts in parts of that of the better of "no drift" and the line: if clocks are many, the
 * result is as good as the better of the two, or better (tests/oracles/clock_shrinkage.py has the model in short,
 * docs/design/decisions/clocks_and_comparisons.md what one clock cannot have). The variance is that under the largest
 * drifts which the lines leave possible (at 5 %): what cannot be told from no drift is no certainty that there is
 * none. */
void lep_clock_shrink(lep_clock_model *const *lines, int count, int freedom);

#define LEP_CLOCK_HORIZON_NS 2e10

#endif
