"""How wrong models of kernels are outside the sizes they were fitted to: where the layer `extrapolation` comes from.

    validation/extrapolation_law.py measure CALLS.parquet      (a minute of one core; builds the probes once)
    validation/extrapolation_law.py law CALLS.parquet [--table CLASSES.csv]

`measure` times the kernels of HPL inside HPL's own steps, with block sizes from 16 to 512 mixed at random. No run of HPL
as a whole is involved. `law` fits the kernels to some of the block sizes, or to the smaller or larger half of the
matrices, and predicts the calls of the others: once for each set below, classes by block size (or by octave of rows).

Written before the first look at any error:

- The error of a model is taken to be that of a wrong exponent: log(measured / predicted) of a class at distance
  d = |ln(size / nearest fitted size)| is normal with standard deviation c * d. Alternatives: c * sqrt(d), and c alone.
  They are compared by likelihood on the same classes; another form than c * d is taken only if it is better by 2 or
  more in log-likelihood on each side.
- Two constants: c_below for sizes below the range, where overheads take over, and c_above for sizes above, where rates
  saturate. Distances in m, n and k add up by their squares, since the errors are drawn independently.
- c is the root of the mean of (error / d)^2, weighted by the square root of the measured time of the class, less the
  variance of the same kernel's classes inside its range, which other layers cover. Rounded up to 0.01.
- Classes that take less than 1 % of the time of all kernels at their block size are left out: they decide nothing.
"""
