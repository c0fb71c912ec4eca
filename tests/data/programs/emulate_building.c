extern void check(void);
void __attribute__((noinline)) initialise(void) { dgemm(100, 100, 100); }
int main(int argc, char **argv) {
    begin(&argc, &argv);
    initialise();
    check();
    dgemm(10, 10, 10);
    printf("done with %s\n", argv[1]);
    MPI_Finalize();
    return 0;
}
