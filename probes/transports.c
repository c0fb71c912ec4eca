#include "transports.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SOCKETS = 4096, ESTABLISHED = 1, PATH_ROOM = 512 };

/* Beginnings of the paths of devices that carry messages: InfiniBand and RoCE, Omni-Path, Slingshot, Aries. */
static const char *const devices[] = {"/dev/infiniband/uverbs", "/dev/hfi1", "/dev/cxi", "/dev/kgni"};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Inodes of the open sockets; writes the devices that are open, too. */
static size_t look_at_files(FILE *file, unsigned long *inodes) {
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[PATH_ROOM], target[PATH_ROOM];
        snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        if (count < MOST_SOCKETS && begins(target, "socket:["))
            inodes[count++] = strtoul(target + strlen("socket:["), NULL, 10);
        for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
            if (begins(target, devices[i]))
                fprintf(file, "device,%s\n", target);
    }
    if (folder)
        closedir(folder);
    return count;
}

typedef struct {
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    int family;
} address;

/* Of the kernel's table: words of 32 bits in the machine's order. An address of IPv4 in one of IPv6 is that of IPv4. */
static address address_of(const char *hex) {
    address found = {.family = strlen(hex) == 8 ? AF_INET : AF_INET6};
    size_t words = found.family == AF_INET ? 1 : 4;
    for (size_t i = 0; i < words; i++) {
        char digits[9] = "";
        memcpy(digits, hex + 8 * i, 8);
        const uint32_t word = (uint32_t)strtoul(digits, NULL, 16);
        memcpy(found.bytes + 4 * i, &word, 4);
    }
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (found.family == AF_INET6 && memcmp(found.bytes, mapped, sizeof mapped) == 0) {
        memmove(found.bytes, found.bytes + 12, 4);
        found.family = AF_INET;
    }
    inet_ntop(found.family, found.bytes, found.text, sizeof found.text);
    return found;
}

static const char *interface_of(const struct ifaddrs *all, const address *mine) {
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != mine->family)
            continue;
        const void *bytes = mine->family == AF_INET
                                ? (const void *)&((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr
                                : (const void *)&((const struct sockaddr_in6 *)(const void *)one->ifa_addr)->sin6_addr;
        if (memcmp(bytes, mine->bytes, mine->family == AF_INET ? 4 : 16) == 0)
            return one->ifa_name;
    }
    return mine->family == AF_INET && mine->bytes[0] == 127 ? "lo" : "unknown";
}

/* proc(5): /proc/net/tcp; of the sockets of this process alone. */
static void write_connections(FILE *file, const char *table, const unsigned long *inodes, size_t count,
                              const struct ifaddrs *interfaces) {
    char line[PATH_ROOM];
    FILE *known = fopen(table, "r");
    while (known && fgets(line, sizeof line, known)) {
        char local[33], remote[33], local_port[5], remote_port[5], state[3], number[21];
        if (sscanf(line, " %*s %32[0-9A-F]:%4[0-9A-F] %32[0-9A-F]:%4[0-9A-F] %2s %*s %*s %*s %*s %*s %20[0-9]", local,
                   local_port, remote, remote_port, state, number) != 6)
            continue;
        if (strtoul(state, NULL, 16) != ESTABLISHED || (strlen(local) != 8 && strlen(local) != 32))
            continue;
        const unsigned long inode = strtoul(number, NULL, 10);
        for (size_t i = 0; i < count; i++) {
            if (inodes[i] != inode)
                continue;
            address mine = address_of(local), theirs = address_of(remote);
            fprintf(file, "tcp,%s,%s:%lu,%s:%lu\n", interface_of(interfaces, &mine), mine.text,
                    strtoul(local_port, NULL, 16), theirs.text, strtoul(remote_port, NULL, 16));
        }
    }
    if (known)
        fclose(known);
}

/* proc(5): /proc/self/maps; what is mapped as shared, writable and no device. */
static void write_memory(FILE *file) {
    char line[2 * PATH_ROOM];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char rights[5], device[16], inode[21], name[PATH_ROOM] = "";
        if (sscanf(line, "%*s %4s %*s %15s %20[0-9] %511[^\n]", rights, device, inode, name) < 3)
            continue;
        if (rights[1] == 'w' && rights[3] == 's' && strtoul(inode, NULL, 10) != 0 && !begins(name, "/dev/infiniband"))
            fprintf(file, "memory,%s:%s,%s\n", device, inode, name);
    }
    if (maps)
        fclose(maps);
}

void lep_transports_write(FILE *file) {
    static unsigned long inodes[MOST_SOCKETS];
    size_t count = look_at_files(file, inodes);
    struct ifaddrs *interfaces = NULL;
    if (getifaddrs(&interfaces) != 0)
        interfaces = NULL;
    write_connections(file, "/proc/self/net/tcp", inodes, count, interfaces);
    write_connections(file, "/proc/self/net/tcp6", inodes, count, interfaces);
    if (interfaces)
        freeifaddrs(interfaces);
    write_memory(file);
}
