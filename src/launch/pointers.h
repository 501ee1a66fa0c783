// Words as exec() and its kin take them.
#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

// Pointers to the strings' characters and a closing null; valid while the strings are unchanged.
inline std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& one : strings) {
    pointers.push_back(one.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace lockstep::launch
