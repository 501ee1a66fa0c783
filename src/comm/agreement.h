// How far all ranks of a group have come, and whether they do the same.
#pragma once

#include "comm/control.h"

#include <cstdint>
#include <string>

namespace lockstep::comm {

class Agreement {
 public:
  Agreement(const Control& control, std::string group_name)
      : control_(control), group_name_(std::move(group_name)) {}

  // Operations that all ranks entered alike.
  std::uint64_t verified() const { return verified_; }
  // Whether every rank has entered operation `sequence`, which this rank has; asked in order.
  // Throws Mismatch, with the same text on all ranks, when they have not entered the same one.
  bool entered(std::uint64_t sequence);
  // Whether every rank has run `steps` steps.
  bool stepped(std::uint64_t steps);
  // Compares operation `sequence` with the ranks that have entered it: a mismatch must show even
  // while another rank keeps everybody waiting.
  void compare_with_present(std::uint64_t sequence) const;

 private:
  void compare(std::uint64_t sequence, int peer) const;

  const Control& control_;
  std::string group_name_;
  std::uint64_t verified_ = 0;
  std::uint64_t stepped_ = 0;  // by every rank when last looked
};

}  // namespace lockstep::comm
