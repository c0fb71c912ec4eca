/* MPI_Pcontrol: the standard's own switch for profilers, 0 off, anything else on; and regions of the program, as IPM has
 * them: (1, "name") begins one, (-1, "name") ends the last. */
#include <stdarg.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record_calls.h"

extern const lep_record_hooks lepaute_record_hooks;

static int64_t begun_ns[64];
static size_t begun = 0;

LEP_EXPORT int MPI_Pcontrol(const int level, ...) {
    lep_recording = lep_open && level != 0;
    lep_last_look = NULL;
    if (level == 1 && begun < sizeof begun_ns / sizeof *begun_ns)
        begun_ns[begun++] = lepaute_record_hooks.now();
    if (level != -1 || begun == 0)
        return MPI_SUCCESS;
    /* Read here, as 1 alone is the switch, and by the kernel, which refuses what is no address. */
    char name[LEP_RECORD_NAME_BYTES] = "";
    va_list more;
    va_start(more, level);
    struct iovec to = {name, sizeof name - 1}, from = {va_arg(more, void *), sizeof name - 1};
    va_end(more);
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) <= 0 || !*name)
        strcpy(name, "region");
    lepaute_record_hooks.add(lepaute_record_hooks.code(LEP_RECORD_PHASE, name), begun_ns[--begun], 0, 0, 0);
    return MPI_SUCCESS;
}
