
program p
  use MODULE
  implicit none
  integer :: e, rank
  DECLARATIONS
  double precision :: x(100), y(100), s
  call mpi_init(e)
  call mpi_comm_rank(mpi_comm_world, rank, e)
  x = 1d0
  call dscal(100, 2d0, x, 1)
  call mpi_allreduce(x(1), s, 1, mpi_double_precision, mpi_sum, mpi_comm_world, e)
  call mpi_irecv(y, 100, mpi_double_precision, mpi_any_source, mpi_any_tag, mpi_comm_world, r(1), e)
  call mpi_isend(x, 50, mpi_double_precision, 1 - rank, 7, mpi_comm_world, r(2), e)
  call mpi_waitall(2, r, mpi_statuses_ignore, e)
  call mpi_iallreduce(mpi_in_place, x, 10, mpi_double_precision, mpi_sum, mpi_comm_world, r(1), e)
  call mpi_wait(r(1), mpi_status_ignore, e)
  call mpi_finalize(e)
end
