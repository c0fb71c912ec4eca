#include "content.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 53, LONGEST = 32 };

static bool parse_number(const char *text, double *value) {
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && isfinite(*value);
}

bool lep_content_parse(const char *text, lep_content *content) {
    const char *colon = strchr(text, ':');
    double number = 0.5;
    if (strlen(text) > LONGEST || (colon && !parse_number(colon + 1, &number)))
        return false;
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *content = (lep_content){.kind = LEP_RANDOM};
    if (length == 8 && strncmp(text, "constant", length) == 0) {
        *content = (lep_content){.kind = LEP_CONSTANT, .value = number};
        return true;
    }
    if (length == 6 && strncmp(text, "masked", length) == 0) {
        *content = (lep_content){.kind = LEP_MASKED, .bits = (int)number};
        return colon && number >= 0 && number <= BITS && (double)content->bits == number;
    }
    if (length == 10 && strncmp(text, "sequential", length) == 0)
        content->kind = LEP_SEQUENTIAL;
    else if (length != 6 || strncmp(text, "random", length) != 0)
        return false;
    return !colon;
}

void lep_content_fill(const lep_content *content, lep_random *random, double *values, size_t count) {
    if (content->kind == LEP_RANDOM) {
        lep_random_fill(random, values, count);
    } else if (content->kind == LEP_MASKED) {
        uint64_t mask = content->bits == BITS ? 0 : UINT64_MAX << content->bits;
        for (size_t i = 0; i < count; i++)
            values[i] = (double)((lep_random_bits(random) >> 11) & mask) * 0x1.0p-53 - 0.5;
    } else {
        double step = content->kind == LEP_SEQUENTIAL && count > 1 ? 1.0 / (double)(count - 1) : 0.0;
        double first = content->kind == LEP_SEQUENTIAL ? -0.5 : content->value;
        for (size_t i = 0; i < count; i++)
            values[i] = first + (double)i * step;
    }
}
