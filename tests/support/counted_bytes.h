// Counts payload where it moves: at the arguments of comm::copy_bytes() and comm::reduce(), which a
// program that links lockstep_test_counted_bytes calls through here (the linker's --wrap). Knows
// nothing of what collectives say of themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::test {

// While it lives, bytes that kernels on this thread read from other ranks' shared memory, and write
// into it. Which memory is whose is looked up at each kernel. The host's one copy of the parameters
// is nobody's.
class CountedBytes {
 public:
  CountedBytes(int rank, int ranks);
  ~CountedBytes();
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;

  std::int64_t read() const { return read_; }
  std::int64_t written() const { return written_; }

  // Of kernels: `bytes` from an address on are read, or written.
  void note_read(const void* address, std::int64_t bytes);
  void note_written(const void* address, std::int64_t bytes);

 private:
  struct Part {
    const std::byte* begin;
    const std::byte* end;
    int owner;
  };

  // Of a control segment: what a rank owns there.
  struct Place {
    std::int64_t offset;
    std::int64_t bytes;
    int owner;
  };

  static std::vector<Place> places_in_control(int ranks);
  std::vector<Part> parts() const;  // by address
  bool of_another(const void* address) const;

  int rank_;
  int ranks_;
  std::vector<Place> control_;
  std::int64_t read_ = 0;
  std::int64_t written_ = 0;
};

}  // namespace lockstep::test
