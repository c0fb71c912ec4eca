#ifndef LEPAUTE_KERNEL_WRAPS_H
#define LEPAUTE_KERNEL_WRAPS_H

#include <stdbool.h>

/* True while HPL_pdfact runs: only there is a dcopy a kernel of the model. */
extern bool lep_inside_pdfact;

#endif
