#ifndef LEPAUTE_KERNEL_WRAPS_H
#define LEPAUTE_KERNEL_WRAPS_H

#include <hpl.h>
#include <stdbool.h>

/* True while HPL_pdfact runs: only there is a dcopy a kernel of the model. */
extern bool lep_inside_pdfact;

/* The panel that is factored or applied from now on. */
void lep_panel_is(const HPL_T_panel *panel);

#endif
