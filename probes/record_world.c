#include "record_world.h"

#include <stdlib.h>

#include "record_inside.h"

static atomic_flag guard = ATOMIC_FLAG_INIT;

struct lep_members {
    MPI_Comm comm;
    int size, number, holders; /* this table is one of them until the communicator is forgotten */
    int children;              /* communicators that were made from it */
    int *world;                /* of each rank */
};

static struct lep_members **translations;
static size_t translation_count, translation_room;

static void release(struct lep_members *members) {
    if (--members->holders == 0) {
        free(members->world);
        free(members);
    }
}

/* FNV-1a, without the sign and never 0. */
static uint64_t mixed(uint64_t hash, uint32_t value) {
    for (int byte = 0; byte < 4; byte++)
        hash = (hash ^ (uint8_t)(value >> 8 * byte)) * UINT64_C(1099511628211);
    return hash;
}

static const uint64_t start = UINT64_C(14695981039346656037);

static int number_of(uint64_t hash) {
    int number = (int)((hash ^ hash >> 32) & INT32_MAX);
    return number & UINT16_MAX ? number : 1;
}

/* Members are added up, so that their order does not matter. */
static uint64_t sum_of(const lep_members *members) {
    uint64_t sum = 0;
    for (int i = 0; i < members->size; i++)
        sum += mixed(start, (uint32_t)members->world[i]);
    return sum;
}

static struct lep_members *translate(MPI_Comm comm) {
    struct lep_members *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    *made = (struct lep_members){.comm = comm, .holders = 1};
    MPI_Group group, world;
    int remote = 0, all = 0;
    PMPI_Comm_test_inter(comm, &remote);
    if (remote)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(world, &all);
    PMPI_Group_size(group, &made->size);
    size_t count = made->size > 0 ? (size_t)made->size : 1;
    made->world = malloc(count * sizeof *made->world);
    int *own = malloc(count * sizeof *own);
    if (made->world && own) {
        for (int i = 0; i < made->size; i++)
            own[i] = i;
        PMPI_Group_translate_ranks(group, made->size, own, world, made->world);
    } else
        made->size = 0;
    free(own);
    /* One of all ranks whose creation was not seen is taken for MPI_COMM_WORLD. */
    made->number = remote ? -1 : made->size == all ? 0 : number_of(sum_of(made));
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return made;
}

static bool add_translation(struct lep_members *made) {
    if (!made)
        return false;
    if (translation_count == translation_room) {
        size_t room = translation_room ? 2 * translation_room : 16;
        struct lep_members **grown = realloc(translations, room * sizeof(struct lep_members *));
        if (!grown) {
            release(made);
            return false;
        }
        translations = grown;
        translation_room = room;
    }
    translations[translation_count++] = made;
    return true;
}

/* NULL where there is no memory. */
static struct lep_members *find(MPI_Comm comm) {
    size_t i = 0;
    while (i < translation_count && translations[i]->comm != comm)
        i++;
    return i < translation_count || add_translation(translate(comm)) ? translations[i] : NULL;
}

static int member(const lep_members *members, int rank) {
    return rank < members->size && members->world[rank] != MPI_UNDEFINED ? members->world[rank] : -1;
}

static int no_rank(int rank) {
    return rank == MPI_PROC_NULL ? LEP_RECORD_PROC_NULL : -1;
}

int lep_world_rank(MPI_Comm comm, int rank) {
    if (rank < 0)
        return no_rank(rank);
    if (comm == MPI_COMM_WORLD)
        return rank;
    lep_enter(&guard);
    const lep_members *found = find(comm);
    int world = found ? member(found, rank) : -1;
    lep_leave(&guard);
    return world;
}

int lep_world_communicator(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD)
        return 0;
    lep_enter(&guard);
    const lep_members *found = find(comm);
    int number = found ? found->number : -1;
    lep_leave(&guard);
    return number;
}

void lep_world_made(MPI_Comm comm, MPI_Comm made) {
#ifdef LEP_RECORD_SMPI /* ranks have their tables in common: a communicator is who is in it */
    (void)comm, (void)made;
#else
    lep_enter(&guard);
    struct lep_members *parent = find(comm);
    uint64_t hash = mixed(start, (uint32_t)(parent ? parent->number : 0));
    hash = mixed(hash, (uint32_t)(parent ? ++parent->children : 0));
    struct lep_members *found = made == MPI_COMM_NULL ? NULL : find(made);
    if (found && found->number >= 0)
        found->number = number_of(mixed(hash, (uint32_t)number_of(sum_of(found))));
    lep_leave(&guard);
#endif
}

const lep_members *lep_members_hold(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD || comm == MPI_COMM_NULL)
        return NULL;
    lep_enter(&guard);
    struct lep_members *found = find(comm);
    if (found)
        found->holders++;
    lep_leave(&guard);
    return found;
}

const lep_members *lep_members_hold_again(const lep_members *members) {
    if (members) {
        lep_enter(&guard);
        ((struct lep_members *)members)->holders++;
        lep_leave(&guard);
    }
    return members;
}

void lep_members_release(const lep_members *members) {
    if (!members)
        return;
    lep_enter(&guard);
    release((struct lep_members *)members);
    lep_leave(&guard);
}

int lep_member(const lep_members *members, int rank) {
    if (rank < 0)
        return no_rank(rank);
    return members ? member(members, rank) : rank;
}

void lep_world_forget(MPI_Comm comm) {
    lep_enter(&guard);
    for (size_t i = 0; i < translation_count; i++)
        if (translations[i]->comm == comm) {
            release(translations[i]);
            translations[i] = translations[--translation_count];
            break;
        }
    lep_leave(&guard);
}
