"""`plugrad launch`: starts a program as several processes, through the installed MPI."""
