! Heat in a plate, by explicit steps; strips of rows on each rank, of which the first and the last are exchanged.
program heat
    use mpi
    implicit none
    integer, parameter :: columns = 1200, rows = 600, steps = 300
    double precision, allocatable :: now(:, :), next(:, :)
    double precision :: change, largest
    integer :: error, rank, ranks, above, below, step, i, j

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    above = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    below = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    allocate (now(columns, 0:rows + 1), next(columns, 0:rows + 1))
    now = 0
    if (rank == 0) now(:, 0) = 1
    next = now
    do step = 1, steps
        call MPI_Sendrecv(now(1, 1), columns, MPI_DOUBLE_PRECISION, above, 1, now(1, rows + 1), columns, &
                          MPI_DOUBLE_PRECISION, below, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        call MPI_Sendrecv(now(1, rows), columns, MPI_DOUBLE_PRECISION, below, 2, now(1, 0), columns, &
                          MPI_DOUBLE_PRECISION, above, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        change = 0
        do j = 1, rows
            do i = 2, columns - 1
                next(i, j) = 0.25d0*(now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1))
                change = max(change, abs(next(i, j) - now(i, j)))
            end do
        end do
        now(:, 1:rows) = next(:, 1:rows)
        if (mod(step, 10) == 0) &
            call MPI_Allreduce(change, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
    end do
    if (rank == 0) print *, 'largest change', largest
    call MPI_Finalize(error)
end program heat
