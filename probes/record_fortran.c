/* MPI from Fortran. Its routines, also those of mpi_f08, convert their arguments and call the PMPI_ routines of C,
 * which nothing can stand before. Where that library of Fortran is loaded with the program, its links to the PMPI_
 * routines are turned to our MPI_ ones: what a call from C and one from Fortran writes is then the same. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record_inside.h"

/* The routine of ours that has this name without its P, NULL where there is none. */
static void *own_routine(const char *name) {
    static void *own_library;
    Dl_info found;
    if (strncmp(name, "PMPI_", 5) != 0)
        return NULL;
    if (!own_library && dladdr((void *)&own_routine, &found))
        own_library = found.dli_fbase;
    void *routine = dlsym(RTLD_DEFAULT, name + 1);
    return routine && dladdr(routine, &found) && found.dli_fbase == own_library ? routine : NULL;
}

/* A library may have been loaded with its links protected. */
static void turn(ElfW(Addr) place, void *routine) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = place & ~(page - 1);
    if (mprotect((void *)first, place + sizeof(void *) - first, PROT_READ | PROT_WRITE) == 0)
        memcpy((void *)place, (void *)&routine, sizeof routine);
}

static void turn_links(ElfW(Addr) base, const ElfW(Rela) * links, size_t bytes, const ElfW(Sym) * symbols,
                       const char *texts) {
    for (size_t i = 0; i < bytes / sizeof *links; i++) {
        size_t symbol = sizeof(void *) == 8 ? links[i].r_info >> 32 : links[i].r_info >> 8;
        void *routine = symbol && links[i].r_addend == 0 ? own_routine(texts + symbols[symbol].st_name) : NULL;
        if (routine)
            turn(base + links[i].r_offset, routine);
    }
}

/* Of Open MPI, of MPICH and of its kin. */
static bool is_fortran(const char *file) {
    static const char *const names[] = {"libmpi_mpifh", "libmpi_usempi", "libmpichf", "libmpifort"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int turn_library(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    if (!is_fortran(basename(library->dlpi_name)))
        return 0;
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
    const ElfW(Rela) * lists[2] = {NULL, NULL};
    size_t bytes[2] = {0, 0};
    const ElfW(Sym) *symbols = NULL;
    const char *texts = NULL;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *place = (const void *)entry->d_un.d_ptr; /* glibc has added the base */
        switch (entry->d_tag) {
        case DT_JMPREL:
            lists[0] = place;
            break;
        case DT_PLTRELSZ:
            bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            lists[1] = place;
            break;
        case DT_RELASZ:
            bytes[1] = entry->d_un.d_val;
            break;
        case DT_SYMTAB:
            symbols = place;
            break;
        case DT_STRTAB:
            texts = place;
            break;
        default:
            break;
        }
    }
    for (int i = 0; i < 2 && symbols && texts; i++)
        if (lists[i])
            turn_links(library->dlpi_addr, lists[i], bytes[i], symbols, texts);
    return 0;
}

__attribute__((constructor)) static void turn_all(void) {
    dl_iterate_phdr(turn_library, NULL);
}
