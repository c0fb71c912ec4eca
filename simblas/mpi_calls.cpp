// MPI as the program sees it: what the rank has computed passes first, then SMPI does the call. Its MPI_ entry, not the
// PMPI_ one: only that heeds the error handler, by default the one that ends a program with a wrong argument.

#include "announce.hpp"
#include "computing.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "state.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <smpi/smpi.h>

using namespace lepaute::simblas;

/// `caller`: the place in the program where it goes on.
extern "C" void lepaute_pass(const void* caller) {
    if (Rank* rank = current_rank()) {
        rank->polling.failures = 0;
        pass(*rank, caller);
        start_receives(*rank, false, true);
    }
}

namespace {

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

} // namespace

#define CALLER __builtin_return_address(0)

#define SMPI(name)                                                                                                     \
    ([] {                                                                                                              \
        static const auto entry = next<decltype(MPI_##name)>("MPI_" #name);                                            \
        return entry;                                                                                                  \
    }())

// Calls that only have to wait for the computing: a jump to SMPI's entry with the arguments left where they are, so
// that no prototype is repeated here. Six registers hold the first arguments (System V ABI, x86-64); none is a double.
// The addresses of SMPI's entries stand in a section of their own, with the names by which they are found.
asm(R"(
    .pushsection lepaute_forwarded, "aw"; lepaute_entries: .popsection
    .irp name, )"
    "Init, Recv, Mrecv, Imrecv, Probe, Mprobe, Improbe, Request_get_status, Cancel, Barrier, Bcast, Reduce, "
    "Allreduce, Reduce_scatter, Reduce_scatter_block, Scan, Exscan, Gather, Gatherv, Scatter, Scatterv, Allgather, "
    "Allgatherv, Alltoall, Alltoallv, Alltoallw, Ibarrier, Ibcast, Ireduce, Iallreduce, Ireduce_scatter, "
    "Ireduce_scatter_block, Iscan, Iexscan, Igather, Igatherv, Iscatter, Iscatterv, Iallgather, Iallgatherv, "
    "Ialltoall, Ialltoallv, Ialltoallw, Neighbor_allgather, Neighbor_allgatherv, Neighbor_alltoall, "
    "Neighbor_alltoallv, Neighbor_alltoallw, Ineighbor_allgather, Ineighbor_allgatherv, Ineighbor_alltoall, "
    "Ineighbor_alltoallv, Ineighbor_alltoallw, Win_create, Win_allocate, Win_allocate_shared, Win_create_dynamic, "
    "Win_free, Win_fence, Win_post, Win_start, Win_complete, Win_wait, Win_test, Win_lock, Win_lock_all, Win_unlock, "
    "Win_unlock_all, Win_flush, Win_flush_all, Win_flush_local, Win_flush_local_all, Win_sync, Put, Get, Accumulate, "
    "Get_accumulate, Fetch_and_op, Compare_and_swap, Rput, Rget, Raccumulate, Rget_accumulate, Comm_idup, "
    "Comm_disconnect, Comm_create_group, Comm_split, Comm_split_type, Graph_create, Dist_graph_create, "
    "Dist_graph_create_adjacent, Intercomm_create, Intercomm_merge, File_open, File_close, File_read, File_read_all, "
    "File_read_at, File_read_at_all, File_write, File_write_all, File_write_at, File_write_at_all, File_iread, "
    "File_iread_all, File_iread_at, File_iread_at_all, File_iread_shared, File_iwrite, File_iwrite_all, "
    "File_iwrite_at, File_iwrite_at_all, File_iwrite_shared, File_read_all_begin, File_read_all_end, "
    "File_read_at_all_begin, File_read_at_all_end, File_read_ordered, File_read_ordered_begin, "
    "File_read_ordered_end, File_read_shared, File_sync, File_write_all_begin, File_write_all_end, "
    "File_write_at_all_begin, File_write_at_all_end, File_write_ordered, File_write_ordered_begin, "
    "File_write_ordered_end, File_write_shared, File_delete, File_preallocate"
    R"(
    .pushsection .rodata; 1: .asciz "MPI_\name"; .popsection
    .pushsection lepaute_forwarded; 2: .quad 1b, 0; .popsection
    .text
    .globl MPI_\name
    .type MPI_\name, @function
    MPI_\name:
    push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; sub $8, %rsp
    mov 56(%rsp), %rdi
    call lepaute_pass@PLT
    add $8, %rsp; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi
    jmp *8+2b(%rip)
    .size MPI_\name, .-MPI_\name
    .endr
    .pushsection lepaute_forwarded; .quad 0; .popsection
)");

struct Forwarded {
    const char* name; // null: the end
    void* entry;      // SMPI's
};
extern "C" [[gnu::visibility("hidden")]] Forwarded lepaute_entries[]; // NOLINT(*-non-const-global-variables)

namespace {

[[gnu::constructor]] void find_forwarded() {
    for (Forwarded* each = lepaute_entries; each->name != nullptr; ++each) {
        each->entry = dlsym(RTLD_NEXT, each->name);
    }
}

void forget_some(MPI_Request* requests, int completed, const int* indices) {
    for (int i = 0; i < completed && completed != MPI_UNDEFINED; ++i) {
        forget_receive(requests[indices[i]]);
    }
}

/// A call in which SMPI 3.32 lets other ranks run while its clock of this rank's computing goes on: their computing
/// would be counted as this rank's too.
template <typename Call>
int unmeasured(const void* caller, Call call) {
    lepaute_pass(caller);
    const int result = call();
    if (Rank* rank = current_rank()) {
        end_call(*rank);
    }
    return result;
}

} // namespace

extern "C" {

/// SMPI provides MPI_THREAD_SINGLE whatever is asked for, which many programs refuse. With one thread a rank, each
/// level keeps what it promises.
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    lepaute_pass(CALLER);
    const int result = SMPI(Init_thread)(argc, argv, required, provided);
    state().thread_level = required;
    if (provided != nullptr) {
        *provided = required;
    }
    return result;
}
int MPI_Query_thread(int* provided) {
    *provided = state().thread_level;
    return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
    return unmeasured(CALLER, [=] { return SMPI(Comm_dup)(comm, made); });
}
int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
    return unmeasured(CALLER, [=] { return SMPI(Comm_dup_with_info)(comm, info, made); });
}
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
    return unmeasured(CALLER, [=] { return SMPI(Comm_create)(comm, group, made); });
}
int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* shape, const int* periodic, int reorder, MPI_Comm* made) {
    return unmeasured(CALLER, [=] { return SMPI(Cart_create)(comm, dimensions, shape, periodic, reorder, made); });
}
int MPI_Cart_sub(MPI_Comm comm, const int* remaining, MPI_Comm* made) {
    return unmeasured(CALLER, [=] { return SMPI(Cart_sub)(comm, remaining, made); });
}

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    announce(CALLER, Sending::blocking, buffer, count, type, to, tag, comm);
    return SMPI(Send)(buffer, count, type, to, tag, comm);
}
int MPI_Ssend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    announce(CALLER, Sending::synchronous, buffer, count, type, to, tag, comm);
    return SMPI(Ssend)(buffer, count, type, to, tag, comm);
}
int MPI_Bsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    announce(CALLER, Sending::blocking, buffer, count, type, to, tag, comm);
    return SMPI(Bsend)(buffer, count, type, to, tag, comm);
}
int MPI_Rsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    announce(CALLER, Sending::blocking, buffer, count, type, to, tag, comm);
    return SMPI(Rsend)(buffer, count, type, to, tag, comm);
}
int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    announce(CALLER, Sending::nonblocking, buffer, count, type, to, tag, comm);
    return SMPI(Isend)(buffer, count, type, to, tag, comm, request);
}
int MPI_Issend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    announce(CALLER, Sending::nonblocking, buffer, count, type, to, tag, comm);
    return SMPI(Issend)(buffer, count, type, to, tag, comm, request);
}
int MPI_Ibsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    announce(CALLER, Sending::nonblocking, buffer, count, type, to, tag, comm);
    return SMPI(Ibsend)(buffer, count, type, to, tag, comm, request);
}
int MPI_Irsend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    announce(CALLER, Sending::nonblocking, buffer, count, type, to, tag, comm);
    return SMPI(Irsend)(buffer, count, type, to, tag, comm, request);
}
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    if (Rank* rank = current_rank()) {
        rank->polling.failures = 0;
        pass(*rank, CALLER);
        if (puts_off_receive(*rank, buffer, count, type, from, tag, comm, request)) {
            return MPI_SUCCESS;
        }
    }
    return SMPI(Irecv)(buffer, count, type, from, tag, comm, request);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    lepaute_pass(CALLER);
    const int result = SMPI(Wait)(request, status);
    forget_receive(*request);
    return result;
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
    lepaute_pass(CALLER);
    const int result = SMPI(Waitall)(count, requests, statuses);
    std::for_each_n(requests, count, forget_receive);
    return result;
}
int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
    lepaute_pass(CALLER);
    const int result = SMPI(Waitany)(count, requests, index, status);
    if (*index != MPI_UNDEFINED) {
        forget_receive(requests[*index]);
    }
    return result;
}
int MPI_Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
    lepaute_pass(CALLER);
    const int result = SMPI(Waitsome)(count, requests, completed, indices, statuses);
    forget_some(requests, *completed, indices);
    return result;
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    lepaute_pass(CALLER);
    const int result = SMPI(Test)(request, flag, status);
    if (*flag != 0) {
        forget_receive(*request);
    }
    return result;
}
int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
    lepaute_pass(CALLER);
    const int result = SMPI(Testall)(count, requests, flag, statuses);
    if (*flag != 0) {
        std::for_each_n(requests, count, forget_receive);
    }
    return result;
}
int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
    lepaute_pass(CALLER);
    const int result = SMPI(Testany)(count, requests, index, flag, status);
    if (*flag != 0 && *index != MPI_UNDEFINED) {
        forget_receive(requests[*index]);
    }
    return result;
}
int MPI_Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
    lepaute_pass(CALLER);
    const int result = SMPI(Testsome)(count, requests, completed, indices, statuses);
    forget_some(requests, *completed, indices);
    return result;
}
int MPI_Request_free(MPI_Request* request) {
    if (const Rank* rank = current_rank(); rank != nullptr && !rank->put_off.empty()) {
        lepaute_pass(CALLER); // what is freed may have been put off
    }
    auto* const freed = *request;
    const int result = SMPI(Request_free)(request);
    disown_receive(freed);
    return result;
}
int MPI_Sendrecv(const void* sent, int sent_count, MPI_Datatype sent_type, int to, int sent_tag, void* received,
                 int received_count, MPI_Datatype received_type, int from, int received_tag, MPI_Comm comm,
                 MPI_Status* status) {
    announce(CALLER, Sending::blocking, sent, sent_count, sent_type, to, sent_tag, comm);
    return SMPI(Sendrecv)(sent, sent_count, sent_type, to, sent_tag, received, received_count, received_type, from,
                          received_tag, comm, status);
}
int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int to, int sent_tag, int from, int received_tag,
                         MPI_Comm comm, MPI_Status* status) {
    announce(CALLER, Sending::blocking, buffer, count, type, to, sent_tag, comm);
    return SMPI(Sendrecv_replace)(buffer, count, type, to, sent_tag, from, received_tag, comm, status);
}
int MPI_Start(MPI_Request* request) {
    announce_anything(CALLER);
    return SMPI(Start)(request);
}
int MPI_Startall(int count, MPI_Request* requests) {
    announce_anything(CALLER);
    return SMPI(Startall)(count, requests);
}
int MPI_Comm_free(MPI_Comm* comm) {
    lepaute_pass(CALLER);
    forget_communicator(*comm);
    return SMPI(Comm_free)(comm);
}

int MPI_Abort(MPI_Comm comm, int code) {
    if (Rank* rank = current_rank()) {
        pass(*rank, CALLER);
        if (state().aborted_rank < 0) {
            state().aborted_rank = static_cast<int>(rank->number);
            state().abort_code = code;
        }
        write_report(); // SimGrid may end by a signal while it ends the other ranks
    }
    return SMPI(Abort)(comm, code);
}

/// What SMPI's compilers make of exit().
void smpi_exit(int code) {
    if (const Rank* rank = current_rank()) {
        if (rank->ended_s < 0.0 && state().exited_rank < 0) {
            state().exited_rank = static_cast<int>(rank->number);
            state().exit_code = code;
        }
    }
    static const auto entry = next<void(int)>("smpi_exit");
    entry(code);
    __builtin_unreachable();
}

int MPI_Finalize() {
    if (Rank* rank = current_rank()) {
        pass(*rank, CALLER);
        start_receives(*rank, false, true);
        rank->ended_s = now_s(*rank);
    }
    return SMPI(Finalize)();
}

/// SMPI's own cost of the call is a simulated sleep each time, which stops a program that times its kernels; here it
/// is computing like any other.
double MPI_Wtime() {
    Rank* rank = current_rank();
    if (rank == nullptr) {
        return SMPI(Wtime)();
    }
    rank->polling.failures = 0; // the program may give up probing at some date
    State& there = state();
    begin_call(*rank, CALLER);
    rank->pending_s += there.request.wtime_s;
    there.wtime_s += there.request.wtime_s;
    return SMPI(Wtime)() + rank->pending_s;
}

/// The standard's hook for profilers: level 1 begins a region, level 0 ends it.
int MPI_Pcontrol(const int level, ...) {
    if (Rank* rank = current_rank()) {
        account(*rank);
        if (level == 1) {
            rank->region_from_s = now_s(*rank);
        } else if (level == 0 && rank->region_from_s >= 0.0) {
            rank->region_s += now_s(*rank) - rank->region_from_s;
            rank->region_from_s = -1.0;
        }
    }
    return MPI_SUCCESS;
}

} // extern "C"
