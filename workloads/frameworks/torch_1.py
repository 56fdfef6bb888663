"""What PyTorch 1.0 does not tell by itself."""

import ctypes
import glob
import os


def count_threads(torch):
    """Count the threads of an operation.

    ``torch.get_num_threads`` of 1.0 says 1 whatever was set: the libraries that compute are asked instead,
    MKL, which ``torch.set_num_threads`` sets, and OpenMP, which takes its number from the environment. Where
    they disagree, the lesser.
    """
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    mkl = ctypes.CDLL(os.path.join(folder, "libcaffe2.so"))
    openmp = ctypes.CDLL(glob.glob(os.path.join(folder, "libgomp*"))[0])
    return min(mkl.MKL_Get_Max_Threads(), openmp.omp_get_max_threads())
