/* HPL's loops and phases in a recording. They are no dynamic symbols, so that the recorder cannot take their place: in
 * the recorded build of xhpl-lepaute they are wrapped at link time (-Wl,--wrap=NAME), and give their times to the
 * recorder where it is loaded. BLAS and MPI calls it sees by itself.
 *
 * The step of a row is the number of the panel that is being worked on. */
#include <dlfcn.h>
#include <hpl.h>
#include <stdio.h>

#include "record.h"

static const lep_record_hooks *hooks;
static bool asked;

static bool recorded(void) {
    if (!asked) {
        hooks = dlsym(RTLD_DEFAULT, LEP_RECORD_HOOKS);
        asked = true;
    }
    return hooks && hooks->version == 1;
}

static int code_of(int *code, lep_record_kind kind, const char *name) {
    if (!*code)
        *code = hooks->code(kind, name);
    return *code;
}

static const char *factorisation_name(HPL_T_FACT factorisation) {
    return factorisation == HPL_LEFT_LOOKING ? "left" : factorisation == HPL_CROUT ? "crout" : "right";
}

static const char *form_name(bool transposed) {
    return transposed ? "transposed" : "no-transposed";
}

/* The row, since HPL_pdfact moves the panel's column on to what comes behind it. */
static int step_of(const HPL_T_panel *panel) {
    return panel->nb > 0 ? panel->ia / panel->nb : -1;
}

/* NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls): the linker's names */

#define WRAP(symbol, kernel, m_, n_, k_, parameters, arguments)                                                        \
    void __real_##symbol parameters;                                                                                   \
    void __wrap_##symbol parameters;                                                                                   \
    void __wrap_##symbol parameters {                                                                                  \
        static int code;                                                                                               \
        int64_t start_ns = recorded() ? hooks->now() : 0;                                                              \
        __real_##symbol arguments;                                                                                     \
        if (start_ns)                                                                                                  \
            hooks->add(code_of(&code, LEP_RECORD_KERNEL, #kernel), start_ns, (m_), (n_), (k_));                        \
    }

#include "hpl_loops.h"

void __real_HPL_pdfact(HPL_T_panel *panel);
void __wrap_HPL_pdfact(HPL_T_panel *panel);
void __wrap_HPL_pdfact(HPL_T_panel *panel) {
    static int code;
    lep_work_on(panel);
    if (!recorded() || panel->grid->mycol != panel->pcol) { /* the other process columns have nothing to do there */
        __real_HPL_pdfact(panel);
        return;
    }
    int before = hooks->step(step_of(panel)), rows = panel->mp;
    int64_t start_ns = hooks->now();
    __real_HPL_pdfact(panel);
    hooks->add(code_of(&code, LEP_RECORD_PHASE, "pdfact"), start_ns, rows, panel->jb, 0);
    hooks->step(before);
}

/* `waiting` is the panel that is probed for meanwhile. */
#define UPDATE(form)                                                                                                   \
    void __real_HPL_pdupdate##form(HPL_T_panel *waiting, int *flag, HPL_T_panel *panel, const int columns);            \
    void __wrap_HPL_pdupdate##form(HPL_T_panel *waiting, int *flag, HPL_T_panel *panel, const int columns);            \
    void __wrap_HPL_pdupdate##form(HPL_T_panel *waiting, int *flag, HPL_T_panel *panel, const int columns) {           \
        static int code;                                                                                               \
        lep_work_on(panel);                                                                                            \
        if (!recorded()) {                                                                                             \
            __real_HPL_pdupdate##form(waiting, flag, panel, columns);                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        int before = hooks->step(step_of(panel)), left = panel->nq;                                                    \
        int rows = panel->mp - (panel->grid->myrow == panel->prow ? panel->jb : 0);                                    \
        int64_t start_ns = hooks->now();                                                                               \
        __real_HPL_pdupdate##form(waiting, flag, panel, columns);                                                      \
        hooks->add(code_of(&code, LEP_RECORD_PHASE, "pdupdate"), start_ns, rows, left - panel->nq, panel->jb);         \
        hooks->step(before);                                                                                           \
    }

UPDATE(TT)
UPDATE(TN)
UPDATE(NT)
UPDATE(NN)

/* Called after each piece of an update until the panel has come: a row only for a call in which it did more than look.
 */
#define BROADCAST(name, parameters, arguments)                                                                         \
    int __real_##name parameters;                                                                                      \
    int __wrap_##name parameters;                                                                                      \
    int __wrap_##name parameters {                                                                                     \
        static int code;                                                                                               \
        if (!panel || !recorded())                                                                                     \
            return __real_##name arguments;                                                                            \
        int before = hooks->step(step_of(panel));                                                                      \
        int64_t messages = hooks->messages(), start_ns = hooks->now();                                                 \
        int result = __real_##name arguments;                                                                          \
        if (hooks->messages() != messages)                                                                             \
            hooks->add(code_of(&code, LEP_RECORD_PHASE, "bcast"), start_ns, 0, 0, 0);                                  \
        hooks->step(before);                                                                                           \
        return result;                                                                                                 \
    }
BROADCAST(HPL_bcast, (HPL_T_panel * panel, int *flag), (panel, flag))
BROADCAST(HPL_bwait, (HPL_T_panel * panel), (panel))

void __real_HPL_pdtrsv(HPL_T_grid *grid, HPL_T_pmat *matrix);
void __wrap_HPL_pdtrsv(HPL_T_grid *grid, HPL_T_pmat *matrix);
void __wrap_HPL_pdtrsv(HPL_T_grid *grid, HPL_T_pmat *matrix) {
    static int code;
    int64_t start_ns = recorded() ? hooks->now() : 0;
    __real_HPL_pdtrsv(grid, matrix);
    if (start_ns)
        hooks->add(code_of(&code, LEP_RECORD_PHASE, "pdtrsv"), start_ns, matrix->mp, matrix->n, 0);
}

/* What is solved, with the names and values of our own command line. */
static void note_parameters(const HPL_T_grid *grid, const HPL_T_palg *algorithm, const HPL_T_pmat *matrix) {
    static const char *const broadcasts[] = {"1ring",          "1ring-modified", "2ring",
                                             "2ring-modified", "long",           "long-modified"};
    const char *swap = algorithm->fswap == HPL_SWAP00   ? "binary-exchange"
                       : algorithm->fswap == HPL_SWAP01 ? "spread-roll"
                                                        : "mix";
    int broadcast = (int)algorithm->btopo - (int)HPL_1RING;
    bool l1_transposed = algorithm->upfun == HPL_pdupdateTT || algorithm->upfun == HPL_pdupdateTN;
    bool u_transposed = algorithm->upfun == HPL_pdupdateTT || algorithm->upfun == HPL_pdupdateNT;
    char line[512];
    snprintf(line, sizeof line,
             "{\"n\": %d, \"nb\": %d, \"p\": %d, \"q\": %d, \"depth\": %d, \"bcast\": \"%s\", \"swap\": \"%s\", "
             "\"swap_threshold\": %d, \"pfact\": \"%s\", \"rfact\": \"%s\", \"nbmin\": %d, \"ndiv\": %d, "
             "\"pmap\": \"%s\", \"l1\": \"%s\", \"u\": \"%s\", \"equil\": %d, \"align\": %d}",
             matrix->n, matrix->nb, grid->nprow, grid->npcol, algorithm->depth,
             broadcast >= 0 && broadcast < 6 ? broadcasts[broadcast] : "unknown", swap, algorithm->fsthr,
             factorisation_name(algorithm->pfact), factorisation_name(algorithm->rfact), algorithm->nbmin,
             algorithm->nbdiv, grid->order == HPL_ROW_MAJOR ? "row" : "column", form_name(l1_transposed),
             form_name(u_transposed), algorithm->equil, algorithm->align);
    hooks->note(line);
}

/* The timed region: HPL_pdgesv itself is the driver's to wrap, its two forms are called nowhere else. */
#define FACTORISATION(form)                                                                                            \
    void __real_HPL_pdgesv##form(HPL_T_grid *grid, HPL_T_palg *algorithm, HPL_T_pmat *matrix);                         \
    void __wrap_HPL_pdgesv##form(HPL_T_grid *grid, HPL_T_palg *algorithm, HPL_T_pmat *matrix);                         \
    void __wrap_HPL_pdgesv##form(HPL_T_grid *grid, HPL_T_palg *algorithm, HPL_T_pmat *matrix) {                        \
        static int code;                                                                                               \
        if (recorded())                                                                                                \
            note_parameters(grid, algorithm, matrix);                                                                  \
        int64_t start_ns = recorded() ? hooks->now() : 0;                                                              \
        __real_HPL_pdgesv##form(grid, algorithm, matrix);                                                              \
        if (start_ns)                                                                                                  \
            hooks->add(code_of(&code, LEP_RECORD_PHASE, "factorisation"), start_ns, matrix->n, matrix->nb, 0);         \
    }

FACTORISATION(0)
FACTORISATION(K2)

/* NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls) */
