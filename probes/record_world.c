#include "record_world.h"

#include "record.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Programs may call MPI from several threads; what is guarded takes a few nanoseconds. */
static atomic_flag guard = ATOMIC_FLAG_INIT;

static void enter(void) {
    while (atomic_flag_test_and_set_explicit(&guard, memory_order_acquire)) {
    }
}

static void leave(void) {
    atomic_flag_clear_explicit(&guard, memory_order_release);
}

/* ---- communicators -------------------------------------------------------------------------------------------- */

typedef struct {
    MPI_Comm comm;
    int size, group;
    int *world; /* of each rank */
} translation;

static translation *translations;
static size_t translation_count, translation_room;

/* Members are added up, so that their order does not matter: FNV-1a of each, without the sign; never 0 but for all. */
static int group_of(const translation *made, MPI_Group world) {
    int ranks = 0;
    PMPI_Group_size(world, &ranks);
    if (made->size == ranks)
        return 0;
    uint64_t sum = 0;
    for (int i = 0; i < made->size; i++) {
        uint64_t hash = UINT64_C(14695981039346656037);
        for (int byte = 0; byte < 4; byte++)
            hash = (hash ^ (uint8_t)((uint32_t)made->world[i] >> 8 * byte)) * UINT64_C(1099511628211);
        sum += hash;
    }
    int group = (int)((sum ^ sum >> 32) & INT32_MAX);
    return group ? group : 1;
}

/* A table of one entry, (-1), where MPI refuses. */
static translation translate(MPI_Comm comm) {
    translation made = {.comm = comm};
    MPI_Group group, world;
    int remote = 0;
    PMPI_Comm_test_inter(comm, &remote);
    if (remote)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &made.size);
    size_t count = made.size > 0 ? (size_t)made.size : 1;
    made.world = malloc(count * sizeof *made.world);
    int *own = malloc(count * sizeof *own);
    if (made.world && own) {
        for (int i = 0; i < made.size; i++)
            own[i] = i;
        PMPI_Group_translate_ranks(group, made.size, own, world, made.world);
    } else
        made.size = 0;
    free(own);
    made.group = remote ? -1 : group_of(&made, world);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return made;
}

static bool add_translation(translation made) {
    if (translation_count == translation_room) {
        size_t room = translation_room ? 2 * translation_room : 16;
        translation *grown = realloc(translations, room * sizeof *grown);
        if (!grown)
            return false;
        translations = grown;
        translation_room = room;
    }
    translations[translation_count++] = made;
    return true;
}

/* NULL where there is no memory. */
static const translation *find(MPI_Comm comm) {
    size_t i = 0;
    while (i < translation_count && translations[i].comm != comm)
        i++;
    return i < translation_count || add_translation(translate(comm)) ? &translations[i] : NULL;
}

int lep_world_rank(MPI_Comm comm, int rank) {
    if (rank < 0)
        return rank == MPI_PROC_NULL ? LEP_RECORD_PROC_NULL : -1;
    if (comm == MPI_COMM_WORLD)
        return rank;
    int world = -1;
    enter();
    const translation *found = find(comm);
    if (found && rank < found->size && found->world[rank] != MPI_UNDEFINED)
        world = found->world[rank];
    leave();
    return world;
}

int lep_world_group(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD)
        return 0;
    enter();
    const translation *found = find(comm);
    int group = found ? found->group : -1;
    leave();
    return group;
}

void lep_world_forget(MPI_Comm comm) {
    enter();
    for (size_t i = 0; i < translation_count; i++)
        if (translations[i].comm == comm) {
            free(translations[i].world);
            translations[i] = translations[--translation_count];
            break;
        }
    leave();
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

/* A handle may stand for several requests at once (MPICH has one for all that were over when they began): a chain is
 * searched from its oldest entry. */
typedef struct node {
    MPI_Request request;
    lep_request what;
    struct node *next;
} node;

enum { BUCKETS = 1 << 10 };
static node *buckets[BUCKETS];
static node *unused;

static node **bucket(MPI_Request request) {
    uintptr_t bits = (uintptr_t)request;
    return &buckets[(bits ^ (bits >> 6) ^ (bits >> 14)) % BUCKETS];
}

void lep_request_keep(MPI_Request request, const lep_request *what) {
    if (request == MPI_REQUEST_NULL)
        return;
    enter();
    node *made = unused;
    if (made)
        unused = made->next;
    else
        made = malloc(sizeof *made);
    if (made) {
        *made = (node){request, *what, NULL};
        node **end = bucket(request);
        while (*end)
            end = &(*end)->next;
        *end = made;
    }
    leave();
}

lep_request lep_request_take(MPI_Request request) {
    lep_request found = {.peer = -1, .tag = -1, .comm = MPI_COMM_NULL};
    if (request == MPI_REQUEST_NULL)
        return found;
    enter();
    node **place = bucket(request);
    while (*place && (*place)->request != request)
        place = &(*place)->next;
    node *taken = *place;
    if (taken) {
        found = taken->what;
        *place = taken->next;
        taken->next = unused;
        unused = taken;
    }
    leave();
    return found;
}
