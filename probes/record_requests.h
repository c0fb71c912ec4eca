/* Requests under way: what the call that began one knows of it, until a call of MPI ends it. */
#ifndef LEPAUTE_RECORD_REQUESTS_H
#define LEPAUTE_RECORD_REQUESTS_H

#include "record_calls.h"

typedef struct {
    message what;
    bool receive, cancelled;    /* cancelled: the program asked for it */
    const lep_members *members; /* of a receive from any source: whom its status may name; held */
    int64_t start_ns;           /* of the call that began it, 0 where that has no row */
    int code;                   /* of a persistent one: of the rows that its starts have */
} lep_request;

extern bool lep_ends_pass_by;               /* waits of the program are not seen here: nothing is kept */
void *lep_room(size_t count, size_t bytes); /* zeros; ends the program where there is none */
void lep_request_keep(MPI_Request request, const lep_request *what);

#ifndef LEP_RECORD_SMPI
/* A persistent request, until it is freed: each start of it is a request under way. */
void lep_persistent_keep(MPI_Request request, const lep_request *what);
bool lep_persistent_begin(MPI_Request request, int64_t start_ns, lep_request *begun);

/* A message that a matched probe found, until it is received. */
void lep_message_keep(MPI_Message handle, message what);
message lep_message_take(MPI_Message handle);
#endif

#endif
