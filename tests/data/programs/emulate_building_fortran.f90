
program solver
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, problem
  double precision :: a(3, 3), began
  double precision, allocatable :: large(:)
  double precision, external :: ddot
  call MPI_Init(problem)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, problem)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, problem)
  allocate(large(1000000))
  large(1) = rank
  call initialise(a)
  began = MPI_Wtime()
  call dgemm('N', 'T', 3, 3, 3, 1d0, a, 3, a, 3, 1d0, a, 3)
  call MPI_Barrier(MPI_COMM_WORLD, problem)
  if (rank == 0) print '(a, 2es24.15)', 'took', MPI_Wtime() - began, ddot(3, a, 1, a, 1)
  deallocate(large)
  call MPI_Finalize(problem)
contains
end program
subroutine initialise(a)
  double precision :: a(3, 3)
  call dgemm('N', 'T', 1000, 1000, 1000, 1d0, a, 1000, a, 1000, 1d0, a, 1000)
end subroutine
