// HPL looks for the next panel in two ways: between the messages of a row swap, where it goes on whatever it finds, and
// in loops that end when the panel is there. Only in the latter may a rank sleep, and then soon.

#include <climits>

extern "C" {
#include <hpl.h>

void lepaute_patience(int probes);

#define SWAP(name)                                                                                                     \
    void __real_##name(HPL_T_panel* waiting, int* flag, HPL_T_panel* panel, const int columns);                        \
    void __wrap_##name(HPL_T_panel* waiting, int* flag, HPL_T_panel* panel, const int columns);                        \
    void __wrap_##name(HPL_T_panel* waiting, int* flag, HPL_T_panel* panel, const int columns) {                       \
        lepaute_patience(INT_MAX);                                                                                     \
        __real_##name(waiting, flag, panel, columns);                                                                  \
        lepaute_patience(4);                                                                                           \
    }
// NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls): the linker's names
SWAP(HPL_pdlaswp00N)
SWAP(HPL_pdlaswp00T)
SWAP(HPL_pdlaswp01N)
SWAP(HPL_pdlaswp01T)
// NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls)

} // extern "C"
