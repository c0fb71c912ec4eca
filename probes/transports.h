/* What this process shares with others: established TCP connections, devices of networks, and shared memory.
 *
 * Which of these lead to other ranks follows from the files of all ranks: a connection has both ends in them, a piece
 * of shared memory is mapped by several.
 */
#ifndef LEPAUTE_TRANSPORTS_H
#define LEPAUTE_TRANSPORTS_H

#include <stdio.h>

/* A line each: "tcp,INTERFACE,ADDRESS:PORT,ADDRESS:PORT" (ours, theirs), "device,PATH", "memory,DEVICE:INODE,NAME".
 * Linux only; what cannot be read is left out. */
void lep_transports_write(FILE *file);

#endif
