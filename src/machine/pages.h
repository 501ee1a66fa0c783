// How the kernel backs memory with huge pages.
#pragma once

#include "machine/file_tree.h"

#include <optional>
#include <string>

namespace lockstep::machine {

// The chosen word of a setting: of files that mark it ("always [madvise] never"); nullopt where the
// kernel does not tell.
std::optional<std::string> private_pages(const FileTree& files = FileTree());  // of malloc and mmap
std::optional<std::string> shared_pages(const FileTree& files = FileTree());   // of memfds

// Whether memory that asks for them (MADV_HUGEPAGE) may get huge pages; true where it is not known.
bool may_use_huge_pages(const std::optional<std::string>& setting);

}  // namespace lockstep::machine
