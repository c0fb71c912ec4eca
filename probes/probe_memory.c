/* probe-memory: passes over a buffer that read one element in every `stride`, a row a batch of passes.
 *
 * What a pass costs depends on more than the size of the buffer (Stanisic et al., "Characterizing the Performance of
 * Modern Architectures Through Opaque Benchmarks", 2017): width of an element, unrolling, which pages the buffer has,
 * how long it is read for, and what the machine did before. All are columns of the design, whose order is shuffled.
 *
 * columns: size_bytes, stride (elements), element_bytes (4, 8, 16, 32), unroll (1, 8), allocation (from 0; each a
 * block of its own, in which every row's buffer begins at a page drawn anew; -1: memory got for this row alone and
 * given back after it) and, where there is one, batch_bytes (else 1 MiB): passes are repeated until so much was read,
 * and timed together. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory_read.h"
#include "probe_common.h"

enum { MOST_ALLOCATIONS = 64, PAGE_BYTES = 4096, ROOM = 2 /* blocks are so many times the largest buffer */ };

typedef struct {
    const char *name;
    size_t size_bytes, stride, element_bytes, batch_bytes, elements, passes; /* elements: of a pass */
    int unroll, allocation;
    lep_read_pass *read;
} memory_row;

static memory_row *read_rows(const lep_design *design, long long most_bytes) {
    size_t name = lep_design_column(design, "design_row"), size = lep_design_column(design, "size_bytes"),
           stride = lep_design_column(design, "stride"), element = lep_design_column(design, "element_bytes"),
           unroll = lep_design_column(design, "unroll"), allocation = lep_design_column(design, "allocation"),
           batch = lep_design_find(design, "batch_bytes");
    memory_row *rows = lep_allocate(design->rows * sizeof *rows, "the design");
    for (size_t i = 0; i < design->rows; i++) {
        lep_design_integer(design, i, name, 0, 1000000000);
        memory_row *row = &rows[i];
        row->name = lep_design_text(design, i, name);
        row->size_bytes = (size_t)lep_design_integer(design, i, size, 1, most_bytes / ROOM);
        row->stride = (size_t)lep_design_integer(design, i, stride, 1, 1 << 20);
        row->element_bytes = (size_t)lep_design_integer(design, i, element, 4, 32);
        row->unroll = (int)lep_design_integer(design, i, unroll, 1, 8);
        row->allocation = (int)lep_design_integer(design, i, allocation, -1, MOST_ALLOCATIONS - 1);
        row->batch_bytes = 1 << 20;
        if (batch < design->columns)
            row->batch_bytes = (size_t)lep_design_integer(design, i, batch, 1, INT64_C(1) << 40);
        row->read = lep_read_of(row->element_bytes, row->unroll);
        if (!row->read)
            lep_design_fail(design, i,
                            "element_bytes %zu unrolled %d times is not there; widths are 4, 8, 16 and, where the "
                            "processor has such registers, 32; unroll is 1 or 8",
                            row->element_bytes, row->unroll);
        row->elements = row->size_bytes / (row->stride * row->element_bytes);
        if (row->elements == 0)
            lep_design_fail(design, i, "a stride of %zu elements of %zu bytes is longer than the buffer of %zu bytes",
                            row->stride, row->element_bytes, row->size_bytes);
        size_t pass_bytes = row->elements * row->element_bytes;
        row->passes = (row->batch_bytes + pass_bytes - 1) / pass_bytes;
    }
    return rows;
}

static char *get_memory(size_t bytes) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        lep_fail("no memory for a buffer of %.1f MB", (double)bytes * 1e-6);
    memset(memory, 1, bytes); /* not 0: pages that were never written all are one page of zeros */
    return memory;
}

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* One row; the number of elements of a pass and of passes are fixed before the clock is read. */
static void measure(FILE *file, const memory_row *row, char *const *blocks, size_t block_bytes, lep_random *random,
                    int cpu) {
    size_t step = row->stride * row->element_bytes, elements = row->elements;
    size_t pass_bytes = elements * row->element_bytes;
    size_t passes = row->passes;
    size_t fresh = row->allocation < 0 ? whole_pages(row->size_bytes) : 0;
    size_t places = (block_bytes - row->size_bytes) / PAGE_BYTES + 1, offset = 0;
    char *buffer;
    if (fresh)
        buffer = get_memory(fresh);
    else
        buffer = blocks[row->allocation] + (offset = PAGE_BYTES * lep_random_below(random, places));
    uint64_t sum = row->read(buffer, elements, step, 1); /* untimed: what fits into a cache is there */
    int64_t start_ns = lep_now_ns();
    sum += row->read(buffer, elements, step, passes);
    int64_t end_ns = lep_now_ns();
    if (fresh)
        munmap(buffer, fresh);
    fprintf(file, "%s,%zu,%zu,%zu,%d,%d,%zu,%zu,%zu,%zu,%d,%.9f,%.9f,%d\n", row->name, row->size_bytes, row->stride,
            row->element_bytes, row->unroll, row->allocation, row->batch_bytes, passes, passes * pass_bytes,
            offset / PAGE_BYTES, (int)(sum & 1), 1e-9 * (double)start_ns, 1e-9 * (double)(end_ns - start_ns), cpu);
}

static void warm_up(const memory_row *row, long long duration_ms) {
    static uint64_t words[512] __attribute__((aligned(64)));
    for (int64_t start_ns = lep_now_ns(); lep_now_ns() - start_ns < duration_ms * 1000000;)
        words[0] += row->read(words, sizeof words / row->element_bytes, row->element_bytes, 1000);
}

int main(int argc, char **argv) {
    lep_self.name = "probe-memory";
    lep_option options[] = {
        {"--design", NULL, true, "table of passes over memory"},
        {"--out", NULL, true, "raw file"},
        {"--cpu", NULL, true, "core to run on"},
        {"--seed", NULL, true, "of the places of the buffers"},
        {"--max-bytes", "4294967296", false, "most memory, all allocations together"},
        {"--warmup-ms", "200", false,
         "reading before the first row: a core that slept takes a while to its full clock"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    long long max_bytes = lep_option_integer(options, count, "--max-bytes", 1 << 20, INT64_MAX);
    long long warmup_ms = lep_option_integer(options, count, "--warmup-ms", 0, 60000);
    int cpu = lep_option_cpu(options, count, "--cpu", 0);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    memory_row *rows = read_rows(&design, max_bytes);
    lep_pin(cpu);

    size_t largest = 0;
    int blocks_wanted = 0;
    for (size_t i = 0; i < design.rows; i++) {
        largest = rows[i].size_bytes > largest ? rows[i].size_bytes : largest;
        blocks_wanted = rows[i].allocation >= blocks_wanted ? rows[i].allocation + 1 : blocks_wanted;
    }
    size_t block_bytes = ROOM * whole_pages(largest);
    if ((double)block_bytes * (blocks_wanted + 1) > (double)max_bytes)
        lep_fail("%d blocks of %.0f MB do not fit into --max-bytes %lld; take fewer allocations or smaller buffers",
                 blocks_wanted, (double)block_bytes * 1e-6, max_bytes);
    char *blocks[MOST_ALLOCATIONS];
    for (int i = 0; i < blocks_wanted; i++)
        blocks[i] = get_memory(block_bytes);

    const char *path = lep_option_text(options, count, "--out");
    FILE *file = lep_output_open(path, NULL, seed, argc, argv);
    lep_output_note(file, "block_bytes", "%zu", block_bytes);
    lep_output_note(file, "warmup_ms", "%lld", warmup_ms);
    lep_output_columns(file, "design_row,size_bytes,stride,element_bytes,unroll,allocation,batch_bytes,passes,"
                             "read_bytes,page,parity,start_s,duration_s,cpu");
    lep_random random = lep_random_seeded((uint64_t)seed, 0);
    warm_up(&rows[0], warmup_ms);
    for (size_t i = 0; i < design.rows; i++) {
        measure(file, &rows[i], blocks, block_bytes, &random, cpu);
        if (i % 64 == 63)
            lep_output_flush(file, path);
    }
    lep_output_close(file, path);
    free(rows);
    return 0;
}
