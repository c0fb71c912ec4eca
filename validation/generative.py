"""The generative model against the published day-by-day calibrations: does what it draws look like what was measured?

    .venv/bin/python validation/generative.py [--reference DIR] [--quick]

Fixed before any fit to these data was looked at:

* data: dahu/kernels/dgemm_daily_good.csv.gz and dgemm_daily_slownodes.csv.gz; all rows, those of one cpu and date
  averaged; coefficients mnk, intercept and mnk_residual (alpha, beta, gamma of the thesis). Nothing is left out;
* model: lepaute.fit.generative with its defaults, groups by BIC;
* synthetic data: nodes and days drawn from the fitted model by the package's own draws, seeds 1 to 20, in the layout of
  the observed data: as many nodes, and each cpu seen on as many and the same days;
* three levels, because rows are not independent: the mean of each cpu over its days; the mean of each day over all CPUs
  of its deviations from their own mean; and what is then left of each row. For each level a Kolmogorov-Smirnov statistic
  of each coefficient and the energy distance (Szekely & Rizzo, 2004) of all three together, each divided by the
  observed standard deviation at that level. 12 tests a state;
* p by permutation, 999 times: nodes, with all their CPUs and rows, are exchanged between observed and synthetic data (of
  the days: days), so that what nodes and days share stays together;
* the 20 p of a test, one a synthetic data set, are not independent; twice their median is a valid p (Rueger, 1978);
* twice: fitted to all nodes (the same data judge the fit, so p is too large), and held out: fitted to one half of the
  nodes (drawn by the seed) and compared with the other half, 20 halvings;
* goal: in each state and way none of the 12 tests is below 0.05 after Holm's correction;
* can it fail? The same with a wrong model, as published in thesis section 4.2.2 for comparison: one Gaussian for all
  nodes; and one without difference between CPUs. Shown, not judged;
* published hyperparameters (dgemm_synthetic_generation.yaml, whole nodes of another year) beside ours as relative
  deviations and correlations; and their 2560 published synthetic nodes against draws of ours from them, to see whether
  a published node is one draw of Sigma_S or of Sigma_S + Sigma_T. Shown, not judged;
* promises on simulated hierarchies (validation has the table, tests/promises the bounds): 200 of 32 nodes x 2 CPUs x 22
  days, a tenth of the rows missing; truth in round numbers near the thesis' figures: sd between CPUs 2, 5, 10 %, between
  days 0.7, 5, 12 %, correlations 0.3. Coverage of 95 % intervals of theta between the bounds of the binomial with error
  1e-6; mean of the variances within 5 % of the truth; one group found in at least 90 % where there is one, and in at
  least 90 % the right nodes where 4 of 32 are 5 standard deviations slower.
"""
