/* Where in the program a call stands: the return addresses of the functions under way. To unwind the stack takes
 * microseconds; where addresses stand on it depends on the caller and its frame alone, so that it is done once for each
 * chain of calls, and later ones are compared word by word. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "record_inside.h"

/* Four functions of the program, and those of a Fortran library before them, which the reader of the file leaves out.
 */
enum { DEPTH = 7, SETS = 128, WAYS = 8, SITES = 1 << 16 };

typedef struct {
    const uintptr_t *frame; /* of the routine of ours that was called; NULL where this is unused */
    int count;
    uint16_t site;
    int32_t above[DEPTH]; /* of each address its place on the stack, in words above the frame */
    uintptr_t addresses[DEPTH];
} chain;

LEP_THREAD_LOCAL uint16_t lep_site = 0;

static LEP_THREAD_LOCAL chain (*known)[WAYS];
static uintptr_t places[SITES][DEPTH];
static int place_count = 1, descriptor = -1; /* site 0 is none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lep_sites_open(const char *folder, int rank) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/rank-%d.sites", folder, rank);
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

/* The address stands in the nearest word below the end of the frame that holds it. */
static _Unwind_Reason_Code go_up(struct _Unwind_Context *context, void *data) {
    chain *found = data;
    uintptr_t address = _Unwind_GetIP(context);
    const uintptr_t *word = (const uintptr_t *)_Unwind_GetCFA(context) - 1;
    const uintptr_t *lowest = found->frame + (found->count ? found->above[found->count - 1] : 0);
    if (found->count == 0 && (address != found->addresses[0] || word <= lowest))
        return _URC_NO_REASON; /* of the recorder itself */
    if (!address)
        return _URC_END_OF_STACK;
    while (word > lowest && *word != address)
        word--;
    found->above[found->count] = (int32_t)(word - found->frame);
    found->addresses[found->count++] = address;
    if (word == lowest)
        found->site = 0; /* it stands there in another form: nothing to compare with */
    return found->count < DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* A line: of each address its offset in its object, and the path of that. */
static void write_place(const uintptr_t *addresses) {
    char path[PATH_MAX];
    Dl_info info;
    for (int i = 0; i < DEPTH && addresses[i] && dladdr((void *)(addresses[i] - 1), &info); i++) {
        bool exists =
            realpath(info.dli_fname, path) || realpath("/proc/self/exe", path); /* of the program as started */
        dprintf(descriptor, "%zx %s\t", addresses[i] - (uintptr_t)info.dli_fbase, exists ? path : info.dli_fname);
    }
    dprintf(descriptor, "\n");
}

static uint16_t number_of(const uintptr_t *addresses) {
    pthread_mutex_lock(&lock);
    int site = 1;
    while (site < place_count && memcmp(places[site], addresses, sizeof *places) != 0)
        site++;
    if (site == place_count && site < SITES) {
        memcpy(places[place_count++], addresses, sizeof *places);
        write_place(addresses);
    }
    pthread_mutex_unlock(&lock);
    return site < SITES ? (uint16_t)site : 0;
}

static bool same(const chain *one, const uintptr_t *frame, uintptr_t address) {
    if (one->frame != frame || one->addresses[0] != address)
        return false;
    for (int i = 1; i < one->count; i++)
        if (frame[one->above[i]] != one->addresses[i])
            return false;
    return true;
}

uint16_t lep_site_of(const uintptr_t *frame, uintptr_t address) {
    static LEP_THREAD_LOCAL uint32_t oldest;
    if (descriptor < 0 || (!known && !(known = calloc(SETS, sizeof *known))))
        return 0;
    chain *set = known[((uintptr_t)frame * 31 + address) * UINT64_C(0x9E3779B97F4A7C15) >> 57];
    for (int i = 0; i < WAYS; i++)
        if (same(&set[i], frame, address))
            return set[i].site;
    chain *made = &set[oldest++ % WAYS];
    *made = (chain){.frame = frame, .addresses = {address}, .site = 1};
    _Unwind_Backtrace(go_up, made);
    bool compares = made->site && made->count;
    made->site = number_of(made->addresses);
    if (!compares)
        made->frame = NULL;
    return made->site;
}
