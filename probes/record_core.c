/* Where a thread was while it was in no call of MPI: on a core, waiting for one, or asleep. */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record_inside.h"

/* Shorter waits are within what the two clocks differ by; a look takes at most this part of the time between looks. */
enum { MIN_WAIT_NS = 20000, LOOK_SHARE = 200, MOST_THREADS = 1 << LEP_RECORD_THREAD_BITS };

LEP_THREAD_LOCAL int64_t lep_look_due_ns = 0;
LEP_THREAD_LOCAL uint32_t lep_thread = 0;

static int64_t look_every_ns; /* 0 until MPI_Init is over */
static atomic_uint threads;
static int threads_of_program, threads_of_library; /* before MPI_Init, and begun in there */

/* At the last look of a thread: the two clocks, and how often it had given up its core, and lost it; when it last had
 * waited, how long it had been ready without one, -1 where the system does not tell. */
static LEP_THREAD_LOCAL struct {
    int64_t at_ns, on_core_ns, sleeps, losses, ready_ns;
} before;

static int64_t on_core_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static int64_t ready_ns(void) {
    char text[96];
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    const char *second = strchr(text, ' '); /* the first is the time on a core */
    return second ? strtoll(second, NULL, 10) : -1;
}

/* How much of a wait up to now_ns was for a core; what was waited since then is of the next interval. */
static int64_t without_core_ns(int64_t waited_ns, int64_t sleeps, int64_t losses, int64_t now_ns, int64_t on_core) {
    int64_t ready = ready_ns(), later = lep_clock_ns() - now_ns - (on_core_ns() - on_core);
    ready -= ready >= later && later > 0 ? later : 0;
    int64_t since = ready - before.ready_ns;
    bool told = ready >= 0 && before.ready_ns >= 0;
    before.ready_ns = ready;
    if (sleeps == 0) /* the core was taken away, or the whole machine stood still */
        return waited_ns;
    if (told)
        return since < waited_ns ? since : waited_ns;
    return waited_ns * losses / (sleeps + losses);
}

static void write_wait(int *code, const char *name, int64_t end_ns, int64_t took_ns, lep_interval interval) {
    if (took_ns >= MIN_WAIT_NS && lep_recording && lep_record_file()->lost == 0)
        lep_write_message(lep_code(code, LEP_RECORD_MPI, name), end_ns - took_ns, end_ns, interval == LEP_IN_KERNEL, -1,
                          0, 0);
}

void lep_look_at_core(int64_t now_ns, lep_interval interval) {
    static int waited_code, slept_code;
    struct rusage used;
    int64_t on_core = on_core_ns(), waited_ns = now_ns - before.at_ns - (on_core - before.on_core_ns);
    lep_look_due_ns = look_every_ns ? now_ns + look_every_ns : INT64_MAX;
    if (!look_every_ns)
        return;
    getrusage(RUSAGE_THREAD, &used);
    if (!before.at_ns) {
        uint32_t number = atomic_fetch_add(&threads, 1);
        lep_thread = number < MOST_THREADS ? number : MOST_THREADS - 1;
        without_core_ns(0, 0, 0, now_ns, on_core);
    } else if (waited_ns >= MIN_WAIT_NS) {
        int64_t sleeps = used.ru_nvcsw - before.sleeps, losses = used.ru_nivcsw - before.losses;
        int64_t without_ns = without_core_ns(waited_ns, sleeps, losses, now_ns, on_core);
        if (interval != LEP_IN_CALL) {
            write_wait(&waited_code, LEP_RECORD_WAITED, now_ns, without_ns, interval);
            if (interval == LEP_OWN_CODE) /* a kernel that sleeps does so for its own threads */
                write_wait(&slept_code, LEP_RECORD_SLEPT, now_ns - without_ns, waited_ns - without_ns, interval);
        }
    }
    before.at_ns = now_ns;
    before.on_core_ns = on_core;
    before.sleeps = used.ru_nvcsw;
    before.losses = used.ru_nivcsw;
}

static int threads_now(void) {
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 ? (int)tasks.st_nlink - 2 : 0;
}

void lep_core_before(void) {
    threads_of_program = threads_of_program ? threads_of_program : threads_now();
}

void lep_core_begin(lep_record_header *file) {
    enum { LOOKS = 64, MIN_NS = 50000, MAX_NS = 1000000 };
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        memcpy(file->affinity, &allowed, sizeof file->affinity);
    file->cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
    PMPI_Query_thread(&file->thread_level);
    threads_of_library = threads_now() - threads_of_program;
    int64_t fastest_ns = MAX_NS;
    for (int i = 0; i < LOOKS; i++) {
        int64_t start_ns = lep_clock_ns();
        on_core_ns();
        getrusage(RUSAGE_THREAD, &(struct rusage){0});
        int64_t took_ns = lep_clock_ns() - start_ns;
        fastest_ns = took_ns < fastest_ns ? took_ns : fastest_ns;
    }
    int64_t every_ns = fastest_ns * LOOK_SHARE;
    look_every_ns = every_ns < MIN_NS ? MIN_NS : every_ns < MAX_NS ? every_ns : MAX_NS;
    lep_look_at_core(lep_clock_ns(), LEP_IN_CALL); /* the first takes long; a wait in it is not of the recording */
    file->start_ns = lep_clock_ns();
    lep_look_at_core(file->start_ns, LEP_IN_CALL);
}

void lep_core_end(lep_record_header *file) {
    file->threads = threads_now() - threads_of_library;
}
