
program caller
  implicit none
  double precision :: a(2,2), c(2,2), x(2), work(200), w(2), ddot, dnrm2, dlamch
  double complex :: z(2), zdotc
  complex :: v(2), cdotu
  real :: f(2), sdot
  integer :: idamax, info, ipiv(2)
  external :: ddot, dnrm2, dlamch, zdotc, cdotu, sdot, idamax
  a = 0; a(1,1) = 1; a(2,2) = 1; c = 0; x = (/1d0, 0d0/); z = (/(1d0,0d0), (0d0,0d0)/)
  v = (/(1.0,0.0), (0.0,0.0)/); f = (/1.0, 0.0/)
  print '(2f5.1)', zdotc(2, z, 1, z, 1)
  print '(2f5.1)', cdotu(2, v, 1, v, 1)
  print '(3f5.1,i4)', ddot(2, x, 1, x, 1), sdot(2, f, 1, f, 1), dnrm2(2, x, 1), idamax(2, x, 1)
  call dgemm('N', 'T', 2, 2, 2, 1d0, a, 2, a, 2, 0d0, c, 2)
  call dgetrf(2, 2, a, 2, ipiv, info)
  print '(3i4)', ipiv, info
  call dsyev('N', 'U', 2, a, 2, w, work, 200, info)
  print '(i4,l2)', info, dlamch('E') == epsilon(1d0) / 2
end program
