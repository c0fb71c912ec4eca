! Bodies that attract each other: those of each rank travel around the ring of ranks in every step.
program bodies
    use mpi_f08
    implicit none
    integer, parameter :: count = 1500, steps = 8
    double precision :: place(3, count), speed(3, count), guest(3, count), next(3, count), away(3)
    type(MPI_Request) :: requests(2)
    integer :: rank, ranks, step, turn, i, j

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    do concurrent (i = 1:count)
        place(:, i) = [sin(1d0*i), cos(1d0*i), 1d0*(rank + 1)*i/count]
    end do
    speed = 0
    do step = 1, steps
        guest = place
        do turn = 1, ranks
            call MPI_Irecv(next, size(next), MPI_DOUBLE_PRECISION, modulo(rank - 1, ranks), turn, &
                           MPI_COMM_WORLD, requests(1))
            call MPI_Isend(guest, size(guest), MPI_DOUBLE_PRECISION, modulo(rank + 1, ranks), turn, &
                           MPI_COMM_WORLD, requests(2))
            do i = 1, count
                do j = 1, count
                    away = guest(:, j) - place(:, i)
                    speed(:, i) = speed(:, i) + 1d-6*away/(sum(away**2) + 1d-2)**1.5d0
                end do
            end do
            call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
            guest = next
        end do
        place = place + speed
    end do
    if (rank == 0) print *, 'the first body is at', place(:, 1)
    call MPI_Finalize()
end program bodies
