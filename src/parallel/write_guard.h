// Turns a write to memory that is for reading only into one line that names the parameter. The
// process still ends by the signal, as it would have without.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::parallel {

class WriteGuard {
 public:
  struct Entry {
    const std::byte* begin;
    const std::byte* end;
    std::string text;  // the line to print
  };

  // Chains a handler of SIGSEGV for the process, once; entries hold until this object dies.
  explicit WriteGuard(std::vector<Entry> entries);
  ~WriteGuard();
  WriteGuard(const WriteGuard&) = delete;
  WriteGuard& operator=(const WriteGuard&) = delete;

 private:
  std::vector<Entry> entries_;
};

}  // namespace lockstep::parallel
