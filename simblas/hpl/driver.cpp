// HPL's solver on the matrix that the arguments describe, timed as HPL times it. Nothing is generated or verified.
//   name value ...   as in HPL.dat, codes where it has codes; seed and pivots of the simulated pivoting

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

extern "C" {
#include <hpl.h>

void lepaute_hpl_pivots(unsigned long seed, int random);
void lepaute_hpl_begins(const HPL_T_grid* grid, const HPL_T_palg* algorithm, const HPL_T_pmat* matrix, int columns);
}

namespace {

/// All ranks begin at this date: the few microseconds by which they leave a barrier apart would only blur comparisons.
constexpr double start_s = 10.0;

std::map<std::string, long> arguments_of(int argc, char** argv) {
    std::map<std::string, long> given;
    for (int i = 1; i + 1 < argc; i += 2) {
        given[argv[i]] = std::strtol(argv[i + 1], nullptr, 10);
    }
    return given;
}

template <class Value, std::size_t N>
const Value& chosen(const Value (&values)[N], long code) {
    if (code < 0 || code >= static_cast<long>(N)) {
        std::fprintf(stderr, "error: HPL has no choice %ld among %zu\n", code, N);
        std::exit(2);
    }
    return values[code];
}

HPL_T_palg algorithm_of(const std::map<std::string, long>& given) {
    static constexpr HPL_T_TOP broadcasts[] = {HPL_1RING, HPL_1RING_M, HPL_2RING, HPL_2RING_M, HPL_BLONG, HPL_BLONG_M};
    static constexpr HPL_T_FACT factorisations[] = {HPL_LEFT_LOOKING, HPL_CROUT, HPL_RIGHT_LOOKING};
    static constexpr HPL_T_SWAP swaps[] = {HPL_SWAP00, HPL_SWAP01, HPL_SW_MIX};
    static const HPL_T_PFA_FUN leaves[2][3] = {{HPL_pdpanllT, HPL_pdpancrT, HPL_pdpanrlT},
                                               {HPL_pdpanllN, HPL_pdpancrN, HPL_pdpanrlN}};
    static const HPL_T_RFA_FUN recursions[2][3] = {{HPL_pdrpanllT, HPL_pdrpancrT, HPL_pdrpanrlT},
                                                   {HPL_pdrpanllN, HPL_pdrpancrN, HPL_pdrpanrlN}};
    static const HPL_T_UPD_FUN updates[2][2] = {{HPL_pdupdateTT, HPL_pdupdateTN}, {HPL_pdupdateNT, HPL_pdupdateNN}};
    HPL_T_palg algorithm;
    std::memset(&algorithm, 0, sizeof algorithm);
    algorithm.btopo = chosen(broadcasts, given.at("bcast"));
    algorithm.depth = static_cast<int>(given.at("depth"));
    algorithm.nbmin = static_cast<int>(given.at("nbmin"));
    algorithm.nbdiv = static_cast<int>(given.at("ndiv"));
    algorithm.pfact = chosen(factorisations, given.at("pfact"));
    algorithm.rfact = chosen(factorisations, given.at("rfact"));
    algorithm.pffun = leaves[given.at("l1")][given.at("pfact")];
    algorithm.rffun = recursions[given.at("l1")][given.at("rfact")];
    algorithm.upfun = updates[given.at("l1")][given.at("u")];
    algorithm.fswap = chosen(swaps, given.at("swap"));
    algorithm.fsthr = static_cast<int>(given.at("swap_threshold"));
    algorithm.equil = static_cast<int>(given.at("equil"));
    algorithm.align = static_cast<int>(given.at("align"));
    return algorithm;
}

/// The leading dimension that HPL takes: a multiple of the alignment, and no power of two.
int leading_dimension(int rows, int align) {
    int dimension = (std::max(1, rows) - 1) / align * align;
    do {
        dimension += align;
    } while ((dimension & (dimension - 1)) == 0);
    return dimension;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const auto given = arguments_of(argc, argv);
    const auto number = [&given](const char* name) { return static_cast<int>(given.at(name)); };
    lepaute_hpl_pivots(static_cast<unsigned long>(given.at("seed")), number("random_pivots"));

    HPL_T_grid grid;
    HPL_grid_init(MPI_COMM_WORLD, number("column_major") != 0 ? HPL_COLUMN_MAJOR : HPL_ROW_MAJOR, number("p"),
                  number("q"), &grid);
    HPL_T_palg algorithm = algorithm_of(given);

    HPL_T_pmat matrix;
    std::memset(&matrix, 0, sizeof matrix);
    matrix.n = number("n");
    matrix.nb = number("nb");
    matrix.mp = HPL_numroc(matrix.n, matrix.nb, matrix.nb, grid.myrow, 0, grid.nprow);
    matrix.nq = HPL_numroc(matrix.n, matrix.nb, matrix.nb, grid.mycol, 0, grid.npcol) + 1; // and the right-hand side
    matrix.ld = leading_dimension(matrix.mp, algorithm.align);
    // The columns, the solution, and what the alignment takes: HPL's own formula.
    const size_t numbers =
        static_cast<size_t>(algorithm.align) + (static_cast<size_t>(matrix.ld) + 1) * static_cast<size_t>(matrix.nq);
    void* memory = malloc(numbers * sizeof(double));
    if (memory == nullptr) {
        std::fprintf(stderr, "xhpl-smpi: no memory for the matrix\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    matrix.A = reinterpret_cast<double*>(HPL_PTR(memory, static_cast<size_t>(algorithm.align) * sizeof(double)));
    matrix.X = matrix.A + static_cast<size_t>(matrix.nq) * static_cast<size_t>(matrix.ld);

    MPI_Barrier(MPI_COMM_WORLD);
    simgrid::s4u::this_actor::sleep_until(start_s);
    const double from_s = MPI_Wtime();
    lepaute_hpl_begins(&grid, &algorithm, &matrix, matrix.nq - 1);
    HPL_pdgesv(&grid, &algorithm, &matrix);
    const double own_s = MPI_Wtime() - from_s;
    double time_s = 0.0;
    MPI_Allreduce(&own_s, &time_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (grid.iam == 0) {
        std::printf("xhpl-smpi: time %.17g info %d\n", time_s, matrix.info);
    }
    free(memory);
    HPL_grid_exit(&grid);
    MPI_Finalize();
    return 0;
}
