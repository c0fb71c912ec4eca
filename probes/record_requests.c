/* The end of requests, by whichever call of MPI: the waits, the tests and MPI_Request_free. A handle that MPI has
 * taken back may be another request's at once, so none may stay in the table, also of what is not recorded. */
#include "record_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handle may stand for several requests at once (MPICH has one for all that were over when they began): they queue,
 * and the oldest is taken first. The first of a queue stands in the table. */
typedef struct node {
    uintptr_t handle;
    lep_request what;
    struct node *later, *last; /* of the same handle; `last` is known to the first of them */
    struct node *next;         /* of another handle, in the same bucket */
} node;

enum { FEWEST_BUCKETS = 1 << 10 };
bool lep_ends_pass_by = false;

static node **buckets;
static size_t bucket_count, handle_count; /* a power of two, and how many handles are in them */
static node *unused;
static atomic_flag guard = ATOMIC_FLAG_INIT;

void *lep_room(size_t count, size_t bytes) {
    void *found = calloc(count ? count : 1, bytes);
    if (!found) {
        fprintf(stderr, "lepaute record: no memory for requests of MPI\n");
        abort();
    }
    return found;
}

static node **bucket(uintptr_t handle) {
    return &buckets[(size_t)((uint64_t)handle * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (bucket_count - 1)];
}

static void grow(void) {
    node **old = buckets;
    size_t old_count = bucket_count;
    bucket_count = old_count ? 2 * old_count : FEWEST_BUCKETS;
    buckets = lep_room(bucket_count, sizeof(node *));
    for (size_t i = 0; i < old_count; i++)
        for (node *one = old[i], *next; one; one = next) {
            next = one->next;
            node **place = bucket(one->handle);
            one->next = *place;
            *place = one;
        }
    free(old);
}

/* Where the first with this handle stands, NULL where there is none; called under the guard. */
static node **place_of(uintptr_t handle) {
    node **place = bucket_count ? bucket(handle) : NULL;
    while (place && *place && (*place)->handle != handle)
        place = &(*place)->next;
    return place && *place ? place : NULL;
}

static void keep(uintptr_t handle, const lep_request *what) {
    lep_enter(&guard);
    if (handle_count >= bucket_count)
        grow();
    node *made = unused, **first = place_of(handle), **start = bucket(handle);
    if (made)
        unused = made->next;
    else
        made = lep_room(1, sizeof *made);
    *made = (node){.handle = handle, .what = *what, .last = made};
    if (first) {
        (*first)->last->later = made;
        (*first)->last = made;
    } else {
        made->next = *start;
        *start = made;
        handle_count++;
    }
    lep_leave(&guard);
}

/* Whether something was kept of it, which is forgotten. */
static bool take(uintptr_t handle, lep_request *what) {
    lep_enter(&guard);
    node **place = place_of(handle), *taken = place ? *place : NULL;
    if (taken) {
        *what = taken->what;
        if (taken->later) {
            *place = taken->later;
            (*place)->last = taken->last;
            (*place)->next = taken->next;
        } else {
            *place = taken->next;
            handle_count--;
        }
        taken->next = unused;
        unused = taken;
    }
    lep_leave(&guard);
    return taken != NULL;
}

void lep_request_keep(MPI_Request request, const lep_request *what) {
    if (request == MPI_REQUEST_NULL || lep_ends_pass_by)
        lep_members_release(what->members);
    else
        keep((uintptr_t)request, what);
}

#ifndef LEP_RECORD_SMPI
/* Persistent requests stand in the same table as those under way, beside them: in no handle, also of a negative number,
 * do the two highest bits differ. */
static uintptr_t persistent(MPI_Request request) {
    return (uintptr_t)request ^ (UINTPTR_MAX >> 1 ^ UINTPTR_MAX >> 2);
}

void lep_persistent_keep(MPI_Request request, const lep_request *what) {
    keep(persistent(request), what);
}

bool lep_persistent_begin(MPI_Request request, int64_t start_ns, lep_request *begun) {
    lep_enter(&guard);
    node **place = place_of(persistent(request));
    if (place)
        *begun = (*place)->what;
    lep_leave(&guard);
    if (!place)
        return false;
    begun->start_ns = lep_recording ? start_ns : 0;
    begun->members = lep_members_hold_again(begun->members);
    lep_request_keep(request, begun);
    return true;
}

void lep_message_keep(MPI_Message handle, message what) {
    keep((uintptr_t)handle, &(lep_request){.what = what, .receive = true});
}

message lep_message_take(MPI_Message handle) {
    lep_request found = {.what = NONE};
    take((uintptr_t)handle, &found);
    return found.what;
}
#endif

/* Of a request that succeeded: nothing where it was cancelled, and of a receive what came. */
static message moved(const lep_request *kept, const MPI_Status *status) {
    int cancelled = 0;
    if (kept->cancelled)
        PMPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        return (message){LEP_RECORD_PROC_NULL, kept->what.tag, 0, kept->what.comm};
    message what = kept->what;
    if (!kept->receive)
        return what;
    if (what.peer == -1)
        what.peer = lep_member(kept->members, status->MPI_SOURCE);
    if (what.tag == -1 && what.peer != LEP_RECORD_PROC_NULL)
        what.tag = status->MPI_TAG;
    what.size_bytes = what.peer == LEP_RECORD_PROC_NULL ? 0 : bytes_received(status);
    return what;
}

/* Of a request that a call with this result says to be over; where the call failed, only what MPI has taken back is.
 * by_start_ns: when that call began. */
static message finished(MPI_Request before, MPI_Request after, int result, const MPI_Status *status,
                        int64_t by_start_ns) {
    static int code;
    lep_request kept;
    if (before == MPI_REQUEST_NULL || (result != MPI_SUCCESS && after != MPI_REQUEST_NULL) ||
        !take((uintptr_t)before, &kept))
        return NONE;
    message what = result == MPI_SUCCESS ? moved(&kept, status) : kept.what;
    lep_members_release(kept.members);
    if (kept.start_ns && lep_recording)
        lep_write_completed(lep_code(&code, LEP_RECORD_MPI, LEP_RECORD_COMPLETED), kept.start_ns, what.peer,
                            (int)what.tag, by_start_ns);
    return what;
}

LEP_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Wait", MPI_Wait(request, status), finished(before, *request, result, status, start_ns), )
}

LEP_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    MPI_Status own;
    MPI_Request before = *request;
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Test", MPI_Test(request, flag, status), *flag, finished(before, *request, result, status, start_ns),
           TESTED)
}

/* Whether it is, the wait tells, or the test. */
LEP_EXPORT int MPI_Cancel(MPI_Request *request) {
    lep_enter(&guard);
    node **place = place_of((uintptr_t)*request);
    if (place)
        (*place)->what.cancelled = true;
    lep_leave(&guard);
    return REAL(MPI_Cancel(request));
}

/* When a freed request is over is not known. Only freeing what has a row of its own is a row: simblas frees its own
 * persistent receives. */
LEP_EXPORT int MPI_Request_free(MPI_Request *request) {
    static int code;
    lep_request kept;
    MPI_Request before = *request;
    if (!lep_call_begin())
        return REAL(MPI_Request_free(request));
    int64_t start_ns = lep_starts();
    int result = REAL(MPI_Request_free(request));
    int64_t end_ns = lep_ended();
    if (result == MPI_SUCCESS && take((uintptr_t)before, &kept)) {
        lep_members_release(kept.members);
        write_call(&code, "MPI_Request_free", start_ns, end_ns, NONE);
        lep_messages++;
    }
#ifndef LEP_RECORD_SMPI
    if (result == MPI_SUCCESS && take(persistent(before), &kept))
        lep_members_release(kept.members);
#endif
    lep_call_end();
    return result;
}

enum { FEW = 256 };

/* The handles of a call's requests before it, and statuses: ours where the program wants none, since only they tell
 * who sent, and how much. Of more than a few they are allocated. */
typedef struct {
    MPI_Request few[FEW], *before;
    MPI_Status few_statuses[FEW], *statuses;
    bool owns_statuses;
} several;

static void remember(several *these, int count, const MPI_Request *requests, MPI_Status *statuses) {
    size_t number = count > 0 ? (size_t)count : 0;
    bool few = number <= FEW;
    these->before = few ? these->few : lep_room(number, sizeof(MPI_Request));
    if (number)
        memcpy(these->before, requests, number * sizeof(MPI_Request));
    these->owns_statuses = statuses == MPI_STATUSES_IGNORE && !few;
    if (statuses != MPI_STATUSES_IGNORE)
        these->statuses = statuses;
    else
        these->statuses = few ? these->few_statuses : lep_room(number, sizeof(MPI_Status));
}

static void forget(several *these) {
    if (these->before != these->few)
        free(these->before);
    if (these->owns_statuses)
        free(these->statuses);
}

#define SEVERAL(count, requests, statuses)                                                                             \
    several these __attribute__((cleanup(forget)));                                                                    \
    remember(&these, count, requests, statuses)

/* The one at this place. A call that failed may have left the place as it was, which can be anything. */
static message finished_one(int at, int count, const several *these, const MPI_Request *after, int result,
                            const MPI_Status *status, int64_t by_start_ns) {
    if (at < 0 || at >= count)
        return NONE;
    if (result == MPI_ERR_IN_STATUS)
        result = status->MPI_ERROR;
    return finished(these->before[at], after[at], result, status, by_start_ns);
}

/* Bytes of all of them; the peer where they are one. */
static message finished_all(int count, const several *these, const MPI_Request *after, int result,
                            int64_t by_start_ns) {
    message sum = NONE;
    for (int i = 0; i < count; i++) {
        message one = finished_one(i, count, these, after, result, &these->statuses[i], by_start_ns);
        if (count == 1)
            return one;
        sum.size_bytes += one.size_bytes;
    }
    return sum;
}

static message finished_some(int done, const int *indices, int count, const several *these, const MPI_Request *after,
                             int result, int64_t by_start_ns) {
    message sum = NONE;
    for (int i = 0; i < done && i < count; i++)
        sum.size_bytes +=
            finished_one(indices[i], count, these, after, result, &these->statuses[i], by_start_ns).size_bytes;
    return sum;
}

LEP_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    SEVERAL(count, requests, statuses);
    RECORDED("MPI_Waitall", MPI_Waitall(count, requests, these.statuses),
             finished_all(count, &these, requests, result, start_ns), )
}

LEP_EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[]) {
    SEVERAL(count, requests, statuses);
    PROBED("MPI_Testall", MPI_Testall(count, requests, flag, these.statuses), *flag,
           finished_all(count, &these, requests, result, start_ns), TESTED)
}

LEP_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    SEVERAL(count, requests, statuses);
    RECORDED("MPI_Waitsome", MPI_Waitsome(count, requests, done, indices, these.statuses),
             finished_some(*done, indices, count, &these, requests, result, start_ns), )
}

LEP_EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]) {
    SEVERAL(count, requests, statuses);
    PROBED("MPI_Testsome", MPI_Testsome(count, requests, done, indices, these.statuses), *done > 0,
           finished_some(*done, indices, count, &these, requests, result, start_ns), TESTED)
}

LEP_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    MPI_Status own;
    SEVERAL(count, requests, &own);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    RECORDED("MPI_Waitany", MPI_Waitany(count, requests, index, status),
             finished_one(*index, count, &these, requests, result, status, start_ns), )
}

LEP_EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    MPI_Status own;
    SEVERAL(count, requests, &own);
    if (status == MPI_STATUS_IGNORE)
        status = &own;
    PROBED("MPI_Testany", MPI_Testany(count, requests, index, flag, status), *flag,
           finished_one(*index, count, &these, requests, result, status, start_ns), TESTED)
}
