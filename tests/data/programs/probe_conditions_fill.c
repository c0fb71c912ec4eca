
#include <stdlib.h>
#include "content.h"
int main(int argc, char **argv) {
    lep_content content;
    if (argc < 2 || !lep_content_parse(argv[1], &content)) return 3;
    double values[1000];
    lep_random random = lep_random_seeded(7, 0);
    lep_content_fill(&content, &random, values, 1000);
    fwrite(values, sizeof values[0], 1000, stdout);
    return 0;
}
