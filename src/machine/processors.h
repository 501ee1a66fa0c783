// What the kernel says about this machine's processors.
#pragma once

#include "machine/file_tree.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::machine {

// As the kernel names them; "unknown" where it does not.
std::string cpu_name(const FileTree& files = FileTree());

// Of all sockets, each cache counted once; 0 where the kernel does not say.
std::int64_t last_level_cache_bytes(const FileTree& files = FileTree());

struct Topology {
  int online = 0;            // processors; 0 where the kernel does not say
  int threads_per_core = 1;  // of the core with most
  int numa_nodes = 1;
};
Topology topology(const FileTree& files = FileTree());

// The processor's flags, in the kernel's words and order ("avx2", "avx512_bf16", "amx_bf16").
std::vector<std::string> cpu_features(const FileTree& files = FileTree());

// Whether products of bf16 matrices have instructions here (AVX512-BF16, AMX, Arm's BF16).
bool multiplies_bf16(const std::vector<std::string>& features);

// The numbers of a list like "0-3,8"; what can't be read is left out.
std::vector<int> numbers_of(const std::string& list);

}  // namespace lockstep::machine
