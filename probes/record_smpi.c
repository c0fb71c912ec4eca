/* The recorder inside of an emulation: a library that is loaded behind simblas, so that what a rank has computed has
 * passed when a call begins, and that writes all ranks' calls into one file, in the order in which they ended.
 *
 * The file: 8 bytes "LEPCALL1", then records; the names of the codes 1, 2, ... stand in a second file, a line each. */
#ifndef LEP_RECORD_SMPI
#define LEP_RECORD_SMPI
#endif
#include "record_smpi.h"

#include <dlfcn.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record_inside.h"

bool lep_open = false;
bool lep_recording = false;
int64_t lep_messages;
bool lep_every_call = false;

#define LEP_DEFINE(name) __typeof__(name) *lep_next_##name;
LEP_WRAPPED(LEP_DEFINE)

typedef struct {
    int32_t rank, code;
    int64_t stamp; /* of its start */
    double start_s, end_s;
    int32_t peer, tag;
    int64_t size_bytes; /* as in lep_record_row */
} record;

_Static_assert(sizeof(record) == 48, "records follow each other without gaps");

/* Of each rank its last stamp, when that and the one before were taken, a row of looks that may still grow. */
typedef struct {
    int64_t stamp;
    double now_s, before_s;
    record looks;
    bool inside; /* of a call: SMPI calls itself through its public names */
} rank_state;

static FILE *file, *names;
static rank_state *states;
static size_t rank_count;
static int code_count;

bool lep_called_by_simblas(const void *place) {
    Dl_info info;
    return dladdr(place, &info) && info.dli_fname && strstr(info.dli_fname, "libsimblas");
}

static void find_entries(void) {
#define LEP_FIND(name) lep_next_##name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);
    LEP_WRAPPED(LEP_FIND)
}

__attribute__((constructor)) static void open_files(void) {
    find_entries();
    const char *path = getenv("LEPAUTE_RECORD_CALLS");
    if (!path || !*path)
        return;
    char text[4096];
    snprintf(text, sizeof text, "%s.names", path);
    file = fopen(path, "wb");
    names = fopen(text, "w");
    if (!file || !names) {
        perror(path);
        exit(2);
    }
    fwrite("LEPCALL1", 1, 8, file);
    lep_open = lep_recording = true;
}

static void put(const record *row) {
    fwrite(row, sizeof *row, 1, file);
}

static void put_looks(rank_state *state) {
    if (state->looks.code)
        put(&state->looks);
    state->looks.code = 0;
}

__attribute__((destructor)) static void close_files(void) {
    if (!file)
        return;
    for (size_t i = 0; i < rank_count; i++)
        put_looks(&states[i]);
    lep_open = lep_recording = false;
    fclose(file);
    fclose(names);
}

static int own_rank(void) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static rank_state *state_of(int rank) {
    if ((size_t)rank >= rank_count) {
        size_t count = 2 * (size_t)rank + 1;
        rank_state *grown = realloc(states, count * sizeof *grown);
        if (!grown)
            abort();
        memset(grown + rank_count, 0, (count - rank_count) * sizeof *grown);
        states = grown;
        rank_count = count;
    }
    return &states[rank];
}

bool lep_call_begin(void) {
    if (!lep_open)
        return false;
    rank_state *state = state_of(own_rank());
    if (state->inside)
        return false;
    state->inside = true;
    return true;
}

void lep_call_end(void) {
    state_of(own_rank())->inside = false;
}

/* Stamps are counted, since many calls of a rank may have the same date. */
int64_t lep_clock_ns(void) {
    rank_state *state = state_of(own_rank());
    state->before_s = state->now_s;
    state->now_s = simgrid_get_clock();
    return ++state->stamp;
}

static record row_of(int code, int64_t start, int64_t end, int peer, int tag, int64_t size_bytes) {
    int rank = own_rank();
    const rank_state *state = state_of(rank);
    double start_s = start == end ? state->now_s : state->before_s; /* those of one call are the last two */
    return (record){rank, code, start, start_s, state->now_s, peer, tag, size_bytes};
}

int lep_code(int *code, lep_record_kind kind, const char *name) {
    (void)kind;
    if (!*code) {
        *code = ++code_count;
        fprintf(names, "%s\n", name);
    }
    return *code;
}

void lep_write_message(int code, int64_t start_ns, int64_t end_ns, int peer, int tag, int64_t size_bytes,
                       uint16_t comm) {
    (void)comm;
    record row = row_of(code, start_ns, end_ns, peer, tag, size_bytes);
    put_looks(state_of(row.rank));
    put(&row);
}

void lep_write_completed(int code, int64_t start_ns, int peer, int tag, int64_t by_start_ns) {
    lep_write_message(code, start_ns, start_ns, peer, tag, by_start_ns, 0);
}

/* Successive looks in vain are one row, as in a recording. */
void lep_write_look(int code, int64_t start_ns, int64_t end_ns, int peer, int tag, uint16_t comm) {
    (void)comm;
    record row = row_of(code, start_ns, end_ns, peer, tag, -1);
    rank_state *state = state_of(row.rank);
    record *looks = &state->looks;
    if (looks->code == code && looks->peer == peer && looks->tag == tag) {
        looks->end_s = row.end_s;
        looks->size_bytes--;
        return;
    }
    put_looks(state);
    *looks = row;
}

void lep_write_test(int code, int64_t start_ns, int64_t end_ns) {
    lep_write_look(code, start_ns, end_ns, -1, -1, 0);
}
