/* The file of a rank: mapped into memory, so that a row costs a few stores, and what was written survives a program
 * that is killed. */
#include "record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record_inside.h"

bool lep_open = false;
bool lep_recording = false;
int64_t lep_clock_shift_ns = 0;
bool lep_every_call = false;
LEP_THREAD_LOCAL bool lep_inside_call = false;
LEP_THREAD_LOCAL lep_record_row *lep_last_look = NULL;
LEP_THREAD_LOCAL int lep_step = -1;
int64_t lep_base_ns = 0;

static int descriptor = -1;
static lep_record_header *header;
static _Atomic(lep_record_row *) chunks[LEP_RECORD_CHUNKS];
static atomic_llong next_row;
static atomic_llong lost_rows;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static lep_record_row no_room[1]; /* stands for rows that could not be had */

static void complain(const char *what, const char *consequence) {
    fprintf(stderr, "lepaute record: %s (%s); %s\n", what, strerror(errno), consequence);
}

/* A child that the program forks shares the mapping but not the counter: it would write over our rows. */
static void stop_in_child(void) {
    lep_open = lep_recording = false;
}

/* Allocated, not only sized: a full disk is then an error here, and no SIGBUS at some store. */
static void *mapped(int64_t offset, size_t bytes) {
    int problem = posix_fallocate(descriptor, offset, (off_t)bytes);
    if (problem) {
        errno = problem;
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset);
    return memory == MAP_FAILED ? NULL : memory;
}

static lep_record_row *add_chunk(size_t index) {
    size_t bytes = (size_t)LEP_RECORD_CHUNK_ROWS * sizeof(lep_record_row);
    pthread_mutex_lock(&lock);
    lep_record_row *chunk = atomic_load(&chunks[index]);
    if (!chunk) {
        chunk = mapped(LEP_RECORD_HEADER_BYTES + (int64_t)(index * bytes), bytes);
        if (!chunk) {
            if (!atomic_load(&lost_rows))
                complain("no room for further calls", "they are missing");
            chunk = no_room; /* asked for once, not at every call: a full disk takes milliseconds to say so */
        }
        atomic_store(&chunks[index], chunk);
    }
    pthread_mutex_unlock(&lock);
    return chunk;
}

void lep_record_open(int rank, int ranks, const char *mpi) {
    const char *folder = getenv("LEPAUTE_RECORD_FOLDER"), *shift = getenv("LEPAUTE_RECORD_TEST_SHIFT_NS");
    if (!folder || header)
        return;
    lep_every_call = getenv("LEPAUTE_RECORD_EVERY_CALL") != NULL;
    if (shift)
        lep_clock_shift_ns = strtoll(shift, NULL, 10) * rank;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/rank-%d.rec", folder, rank);
    descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    lep_record_header *made = descriptor < 0 ? NULL : mapped(0, LEP_RECORD_HEADER_BYTES);
    if (!made) {
        complain(path, "nothing is recorded on this rank");
        return;
    }
    memcpy(made->magic, "LEPREC5", sizeof made->magic);
    made->header_bytes = LEP_RECORD_HEADER_BYTES;
    made->row_bytes = sizeof(lep_record_row);
    made->rank = rank;
    made->ranks = ranks;
    made->pid = (int32_t)getpid();
    made->names = 1;
    made->base_ns = lep_base_ns = lep_clock_ns();
    lep_sites_open(folder, rank);
    gethostname(made->host, sizeof made->host - 1);
    snprintf(made->mpi, sizeof made->mpi, "%s", mpi);
    header = made;
    add_chunk(0);
    pthread_atfork(NULL, NULL, stop_in_child);
    lep_open = lep_recording = true;
}

lep_record_header *lep_record_file(void) {
    return header;
}

void lep_record_close(lep_record_end how) {
    if (!lep_open)
        return;
    lep_core_end(header);
    lep_open = lep_recording = false;
    long long used = atomic_load(&next_row), room = (long long)LEP_RECORD_CHUNKS * LEP_RECORD_CHUNK_ROWS;
    used = used < room ? used : room;
    while (used && atomic_load(&chunks[(used - 1) / LEP_RECORD_CHUNK_ROWS]) == no_room)
        used = (used - 1) / LEP_RECORD_CHUNK_ROWS * LEP_RECORD_CHUNK_ROWS;
    header->used = used;
    header->lost = atomic_load(&lost_rows);
    header->finished = (int32_t)how;
    if (ftruncate(descriptor, LEP_RECORD_HEADER_BYTES + header->used * (int64_t)sizeof(lep_record_row)) != 0)
        complain("the end of the file cannot be cut off", "it stays long");
    close(descriptor);
}

int64_t lep_record_took_ns(void) {
    int64_t sum = 0;
    for (long long i = 0; i < atomic_load(&next_row) && i < LEP_RECORD_CHUNK_ROWS; i++) {
        const lep_record_row *row = &atomic_load(&chunks[0])[i];
        sum += lep_duration_ns(row->duration) - (row->message.size_bytes < 0 ? row->message.tag : 0);
    }
    return sum;
}

void lep_record_rewind(void) {
    memset(atomic_load(&chunks[0]), 0, (size_t)atomic_exchange(&next_row, 0) * sizeof(lep_record_row));
}

__attribute__((destructor)) static void exit_without_finalize(void) {
    if (lep_open)
        header->end_ns = lep_clock_ns();
    lep_record_close(LEP_EXITED);
}

lep_record_row *lep_put(const lep_record_row *row) {
    long long index = atomic_fetch_add_explicit(&next_row, 1, memory_order_relaxed);
    size_t chunk = (size_t)(index / LEP_RECORD_CHUNK_ROWS);
    lep_record_row *rows =
        chunk < LEP_RECORD_CHUNKS ? atomic_load_explicit(&chunks[chunk], memory_order_acquire) : NULL;
    if (!rows && chunk < LEP_RECORD_CHUNKS)
        rows = add_chunk(chunk);
    if (!rows || rows == no_room) {
        long long lost = 1 + atomic_fetch_add(&lost_rows, 1);
        if (header)
            header->lost = lost;
        return NULL;
    }
    rows[index % LEP_RECORD_CHUNK_ROWS] = *row;
    return &rows[index % LEP_RECORD_CHUNK_ROWS];
}

static int new_code(lep_record_kind kind, const char *name) {
    pthread_mutex_lock(&lock);
    uint32_t code = 0;
    for (uint32_t i = 1; i < header->names && !code; i++)
        if (header->names_of[i].kind == kind &&
            strncmp(header->names_of[i].name, name, sizeof header->names_of[i].name - 1) == 0)
            code = i;
    if (!code && header->names < LEP_RECORD_NAMES) {
        code = header->names;
        header->names_of[code].kind = (uint8_t)kind;
        snprintf(header->names_of[code].name, sizeof header->names_of[code].name, "%s", name);
        header->names = code + 1;
    }
    pthread_mutex_unlock(&lock);
    return (int)code;
}

int lep_code(int *code, lep_record_kind kind, const char *name) {
    if (!*code && header)
        *code = new_code(kind, name);
    return *code;
}

void *lep_next_symbol(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "lepaute record: the program calls %s, and no library after ours has it\n", name);
        abort();
    }
    return found;
}

extern int64_t lep_messages;

static int hook_code(lep_record_kind kind, const char *name) {
    return header ? new_code(kind, name) : 0;
}

static int64_t hook_now(void) {
    return lep_recording ? lep_clock_ns() : 0;
}

static void hook_add(int code, int64_t start_ns, int m, int n, int k) {
    bool is_kernel = header && header->names_of[code].kind == LEP_RECORD_KERNEL;
    if (!start_ns || !lep_recording || (is_kernel && lep_no_work(n)))
        return;
    int64_t end_ns = lep_clock_ns();
    lep_site = 0; /* a loop or a phase is no call */
    lep_write_kernel(code, start_ns, end_ns, m, n, k);
    if (is_kernel)
        lep_kernel_ended(end_ns);
}

static int hook_step(int step) {
    int before = lep_step;
    lep_step = step < LEP_RECORD_STEPS ? step : -1;
    return before;
}

static int64_t hook_messages(void) {
    return lep_messages;
}

static void hook_note(const char *line) {
    if (!header)
        return;
    size_t used = strlen(header->notes), room = sizeof header->notes - used;
    if (strlen(line) + 2 <= room)
        snprintf(header->notes + used, room, "%s\n", line);
}

LEP_EXPORT const lep_record_hooks lepaute_record_hooks = {1,         hook_code,     hook_now, hook_add,
                                                          hook_step, hook_messages, hook_note};
