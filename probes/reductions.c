#include "reductions.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "probe_common.h"

static const lep_element elements_of[] = {
    {"MPI_BYTE", MPI_BYTE, 1, LEP_BITS},
    {"MPI_INT8_T", MPI_INT8_T, 1, LEP_INTEGER},
    {"MPI_INT", MPI_INT, sizeof(int), LEP_INTEGER},
    {"MPI_LONG", MPI_LONG, sizeof(long), LEP_INTEGER},
    {"MPI_FLOAT", MPI_FLOAT, sizeof(float), LEP_FLOATING},
    {"MPI_DOUBLE", MPI_DOUBLE, sizeof(double), LEP_FLOATING},
};

static const lep_operator operators[] = {
    {"MPI_SUM", MPI_SUM, LEP_SUM},    {"MPI_PROD", MPI_PROD, LEP_PROD}, {"MPI_MAX", MPI_MAX, LEP_MAX},
    {"MPI_MIN", MPI_MIN, LEP_MIN},    {"MPI_BAND", MPI_BAND, LEP_BAND}, {"MPI_BOR", MPI_BOR, LEP_BOR},
    {"MPI_BXOR", MPI_BXOR, LEP_BXOR}, {"MPI_LAND", MPI_LAND, LEP_LAND}, {"MPI_LOR", MPI_LOR, LEP_LOR},
};

static LEP_FIND_NAMED(lep_element, element_named, elements_of,
                      sizeof elements_of /
                          sizeof *elements_of) static LEP_FIND_NAMED(lep_operator, operator_named, operators,
                                                                     sizeof operators / sizeof *operators)

    static bool is_defined(const lep_reduction *reduction) {
    lep_combination combination = reduction->with->combination;
    switch (reduction->element->number) {
    case LEP_BITS:
        return combination == LEP_BAND || combination == LEP_BOR || combination == LEP_BXOR;
    case LEP_FLOATING:
        return combination <= LEP_MIN;
    default:
        return true;
    }
}

lep_reduction lep_reduction_named(const char *datatype, const char *op) {
    lep_reduction reduction = {element_named(datatype), operator_named(op)};
    if (!reduction.element)
        lep_fail("--datatype: %s is none of MPI_BYTE, MPI_INT8_T, MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE", datatype);
    if (!reduction.with)
        lep_fail("--op: %s is none of MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, "
                 "MPI_LOR",
                 op);
    if (!is_defined(&reduction))
        lep_fail("--op: MPI does not define %s for %s", op, datatype);
    return reduction;
}

/* As an element of so many bytes holds it. */
static int64_t narrowed(const lep_element *element, uint64_t value) {
    if (element->number == LEP_BITS)
        return (uint8_t)value;
    if (element->bytes == 1)
        return (int8_t)value;
    return element->bytes == 4 ? (int32_t)value : (int64_t)value;
}

/* Products are of ones and twos, which stay exact. */
static uint64_t initial(const lep_reduction *reduction, int rank, int i) {
    if (reduction->with->combination == LEP_PROD)
        return 1 + (uint64_t)(rank + i) % 2;
    return (uint64_t)rank + (uint64_t)i % 7 + 1;
}

void lep_reduction_fill(const lep_reduction *reduction, void *vector, int rank, int elements) {
    const lep_element *element = reduction->element;
    for (int i = 0; i < elements; i++) {
        uint64_t value = initial(reduction, rank, i);
        int64_t whole = narrowed(element, value);
        if (element->number == LEP_FLOATING && element->bytes == sizeof(float))
            ((float *)vector)[i] = (float)value;
        else if (element->number == LEP_FLOATING)
            ((double *)vector)[i] = (double)value;
        else if (element->bytes == 1)
            ((unsigned char *)vector)[i] = (unsigned char)whole;
        else if (element->bytes == sizeof(int))
            ((int *)vector)[i] = (int)whole;
        else
            ((long *)vector)[i] = (long)whole;
    }
}

static int64_t whole_at(const lep_element *element, const void *vector, int i) {
    if (element->bytes == 1)
        return narrowed(element, ((const unsigned char *)vector)[i]);
    return element->bytes == sizeof(int) ? ((const int *)vector)[i] : ((const long *)vector)[i];
}

static double combined(lep_combination combination, double a, double b) {
    switch (combination) {
    case LEP_SUM:
        return a + b;
    case LEP_PROD:
        return a * b;
    case LEP_MAX:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

static uint64_t combined_whole(lep_combination combination, int64_t a, int64_t b) {
    switch (combination) {
    case LEP_SUM:
        return (uint64_t)a + (uint64_t)b;
    case LEP_PROD:
        return (uint64_t)a * (uint64_t)b;
    case LEP_MAX:
        return (uint64_t)(a > b ? a : b);
    case LEP_MIN:
        return (uint64_t)(a < b ? a : b);
    case LEP_BAND:
        return (uint64_t)a & (uint64_t)b;
    case LEP_BOR:
        return (uint64_t)a | (uint64_t)b;
    case LEP_BXOR:
        return (uint64_t)a ^ (uint64_t)b;
    case LEP_LAND:
        return a && b;
    default:
        return a || b;
    }
}

static bool floating_is(const lep_reduction *reduction, const void *vector, int first, int last, int offset, int i) {
    double value = (double)initial(reduction, first, offset + i);
    for (int rank = first + 1; rank <= last; rank++)
        value = combined(reduction->with->combination, value, (double)initial(reduction, rank, offset + i));
    if (reduction->element->bytes == sizeof(float))
        return ((const float *)vector)[i] == (float)value;
    return ((const double *)vector)[i] == value;
}

static bool whole_is(const lep_reduction *reduction, const void *vector, int first, int last, int offset, int i) {
    const lep_element *element = reduction->element;
    int64_t value = narrowed(element, initial(reduction, first, offset + i));
    for (int rank = first + 1; rank <= last; rank++) {
        int64_t other = narrowed(element, initial(reduction, rank, offset + i));
        value = narrowed(element, combined_whole(reduction->with->combination, value, other));
    }
    return whole_at(element, vector, i) == value;
}

bool lep_reduction_is(const lep_reduction *reduction, const void *vector, int first, int last, int offset,
                      int elements) {
    bool floating = reduction->element->number == LEP_FLOATING;
    for (int i = 0; i < elements; i++)
        if (!(floating ? floating_is : whole_is)(reduction, vector, first, last, offset, i))
            return false;
    return true;
}
