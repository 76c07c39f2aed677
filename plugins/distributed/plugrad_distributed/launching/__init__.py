"""`plugrad launch`: starts a program as several processes, by the MPI that is installed."""
