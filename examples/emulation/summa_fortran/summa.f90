! Product of matrices, C = A B, on a grid of P x Q ranks (SUMMA).
!
!   summa N NB P Q
!
! All three are N x N; rank (p, q) holds a block of each. For every NB columns of A and rows of B, the ranks that hold
! them broadcast these columns along the rows of the grid and these rows along its columns, and each rank adds their
! product to its block of C: one dgemm.
!
! B is stored transposed, so that a broadcast row of B is a column in memory: no packing is needed, and all computing
! between the broadcasts is done by the BLAS.
!
! A and B hold small integers, for which dgemm is exact: the printed error is 0 unless something is wrong. Nothing else
! depends on the values.
program summa
  use mpi
  use, intrinsic :: iso_fortran_env, only: real64, error_unit
  implicit none

  external :: dgemm
  real(real64), allocatable, target :: a(:, :), bt(:, :), c(:, :), a_taken(:, :), bt_taken(:, :)
  real(real64), pointer, contiguous :: a_panel(:, :), bt_panel(:, :)
  real(real64) :: start, mine, time, error, largest
  integer :: n, nb, p, q, ranks, rank, my_p, my_q, along_row, along_column, ierr
  integer :: rows, columns, first_row, first_column   ! of this rank's block of C
  integer :: a_width, a_first, bt_width, bt_first     ! the columns of A, and the rows of B, that this rank holds
  integer :: k, width, a_owner, bt_owner, a_end, bt_end

  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  n = argument(1)
  nb = argument(2)
  p = argument(3)
  q = argument(4)
  if (min(nb, p, q) < 1 .or. n < max(p, q) .or. p * q /= ranks) then
    if (rank == 0) write (error_unit, '(a, i0)') 'usage: summa N NB P Q     N >= P and Q, and P x Q = the ranks: ', ranks
    call MPI_Finalize(ierr)
    stop 2
  end if
  my_p = rank / q
  my_q = mod(rank, q)
  call MPI_Comm_split(MPI_COMM_WORLD, my_p, my_q, along_row, ierr)
  call MPI_Comm_split(MPI_COMM_WORLD, my_q, my_p, along_column, ierr)

  call share(n, p, my_p, first_row, rows)
  call share(n, q, my_q, first_column, columns)
  call share(n, q, my_q, a_first, a_width)
  call share(n, p, my_p, bt_first, bt_width)
  allocate (a(rows, a_width), bt(columns, bt_width), c(rows, columns), a_taken(rows, nb), bt_taken(columns, nb))
  call fill()

  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  start = MPI_Wtime()
  k = 0
  do while (k < n)
    ! A panel ends where the block of one of its two owners ends.
    a_owner = owner(n, q, k, a_end)
    bt_owner = owner(n, p, k, bt_end)
    width = min(nb, a_end - k, bt_end - k)
    if (my_q == a_owner) then
      a_panel => a(:, k - a_first + 1:k - a_first + width)
    else
      a_panel => a_taken(:, :width)
    end if
    if (my_p == bt_owner) then
      bt_panel => bt(:, k - bt_first + 1:k - bt_first + width)
    else
      bt_panel => bt_taken(:, :width)
    end if
    call MPI_Bcast(a_panel, rows * width, MPI_DOUBLE_PRECISION, a_owner, along_row, ierr)
    call MPI_Bcast(bt_panel, columns * width, MPI_DOUBLE_PRECISION, bt_owner, along_column, ierr)
    call dgemm('N', 'T', rows, columns, width, 1.0_real64, a_panel, rows, bt_panel, columns, 1.0_real64, c, rows)
    k = k + width
  end do
  mine = MPI_Wtime() - start
  call MPI_Reduce(mine, time, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr)

  error = largest_error()
  call MPI_Reduce(error, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    print '(a, f12.6, a)', 'time: ', time, ' s'
    print '(a, f12.3)', 'rate_gflops: ', 2.0e-9_real64 * real(n, real64)**3 / time
    print '(a, es12.3)', 'error: ', largest
  end if
  deallocate (a, bt, c, a_taken, bt_taken)
  call MPI_Comm_free(along_row, ierr)
  call MPI_Comm_free(along_column, ierr)
  call MPI_Finalize(ierr)

contains

  !> Argument `number` of the command line as an integer; 0 if it is missing.
  integer function argument(number)
    integer, intent(in) :: number
    character(len=32) :: word
    integer :: status
    call get_command_argument(number, word)
    read (word, *, iostat=status) argument
    if (status /= 0) argument = 0
  end function argument

  !> Share `index` of `total` indices divided among `parts` ranks: those after `first`.
  pure subroutine share(total, parts, index, first, count)
    integer, intent(in) :: total, parts, index
    integer, intent(out) :: first, count
    first = index * (total / parts) + min(index, mod(total, parts))
    count = total / parts + merge(1, 0, index < mod(total, parts))
  end subroutine share

  !> The rank whose share contains the index after `k`, and the end of that share.
  integer function owner(total, parts, k, end)
    integer, intent(in) :: total, parts, k
    integer, intent(out) :: end
    integer :: first, count
    end = 0
    do owner = 0, parts - 1
      call share(total, parts, owner, first, count)
      end = first + count
      if (k < end) exit
    end do
  end function owner

  !> Entry (i, j) of A, from 1: an integer from -8 to 8.
  elemental real(real64) function a_at(i, j)
    integer, intent(in) :: i, j
    a_at = real(mod(7 * mod(i, 17) + 3 * mod(j, 17), 17) - 8, real64)
  end function a_at

  !> Entry (i, j) of B, from 1: an integer from -6 to 6.
  elemental real(real64) function b_at(i, j)
    integer, intent(in) :: i, j
    b_at = real(mod(5 * mod(i, 13) + 11 * mod(j, 13), 13) - 6, real64)
  end function b_at

  subroutine fill()
    integer :: i, j
    do j = 1, a_width
      a(:, j) = [(a_at(first_row + i, a_first + j), i=1, rows)]
    end do
    do j = 1, bt_width
      bt(:, j) = [(b_at(bt_first + j, first_column + i), i=1, columns)]
    end do
    c = 0.0_real64
  end subroutine fill

  !> Largest error of the entries in the corners and the middle of this rank's block, against their definition as sums.
  real(real64) function largest_error()
    integer :: i, j, l, place_i, place_j
    real(real64) :: exact
    largest_error = 0.0_real64
    do place_j = 0, 2
      do place_i = 0, 2
        i = 1 + place_i * (rows - 1) / 2
        j = 1 + place_j * (columns - 1) / 2
        exact = sum([(a_at(first_row + i, l) * b_at(l, first_column + j), l=1, n)])
        largest_error = max(largest_error, abs(c(i, j) - exact))
      end do
    end do
  end function largest_error
end program summa
