/* The loops of probe-memory: an element of a width in every so many bytes, read and added up. */
#ifndef LEPAUTE_MEMORY_READ_H
#define LEPAUTE_MEMORY_READ_H

#include <stddef.h>
#include <stdint.h>

/* Reads `elements` elements, `step_bytes` from one to the next, `passes` times over; the sum, so that all are read. */
typedef uint64_t lep_read_pass(const void *buffer, size_t elements, size_t step_bytes, size_t passes);

/* NULL for a width or an unrolling that is not there, or that this processor has no registers for. */
lep_read_pass *lep_read_of(size_t element_bytes, int unroll);

#endif
