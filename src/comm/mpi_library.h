// An MPI library, found and loaded when it is asked for, so that Lockstep builds and runs without
// any. No header of MPI is compiled in: the two binary interfaces in use, Open MPI's (4 and 5) and
// the one that MPICH, Intel MPI, MVAPICH and Cray MPICH share (mpich.org/abi), differ only in what
// stands for a handle, and mpi_port.cpp has both.
#pragma once

#include <string>

namespace lockstep::comm {

class MpiLibrary {
 public:
  enum class Abi { open_mpi, mpich };

  // In this order: the library that this program already has; the file that LOCKSTEP_MPI names; the
  // library of whoever started this process (OMPI_COMM_WORLD_SIZE: Open MPI; PMI_SIZE: MPICH),
  // where the loader finds it or beside the mpirun in PATH. Throws UsageError saying what to
  // install.
  MpiLibrary();

  Abi abi() const { return abi_; }
  // "Open MPI 5.0.11", "MPICH 5.0.2": the first words of what it says of itself.
  const std::string& version() const { return version_; }

  // An MPI function or object of the library. Throws SystemError when it has none of the name.
  void* symbol(const char* name) const;
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* handle_ = nullptr;  // of dlopen; never closed: MPI's threads outlive us
  Abi abi_ = Abi::open_mpi;
  std::string version_;
};

}  // namespace lockstep::comm
