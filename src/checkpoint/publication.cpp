#include "checkpoint/publication.h"

#include "base/invariant.h"
#include "lockstep/error.h"

#include <system_error>

#include <array>
#include <filesystem>
#include <utility>

namespace lockstep::checkpoint {
namespace {

const std::string& made(FileSystem& files, const std::string& folder) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(folder, error);
  if (error) {
    throw SystemError(folder + ": can't be made: " + error.message());
  }
  if (is_new) {
    files.flush_folder(std::filesystem::absolute(folder).parent_path().string());
  }
  return folder;
}

std::string path_in(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

}  // namespace

std::string unfinished_path(const std::string& folder, std::int64_t step) {
  return path_in(folder, unfinished_name(step));
}

FileEntry write_share(FileSystem& files, const std::string& unfinished, const std::string& name,
                      std::vector<NamedTensor> pieces) {
  const SafetensorsImage image(std::move(pieces));
  const std::vector<ByteSpan> bytes = image.pieces();
  FileEntry entry{.name = name, .bytes = 0, .hash = hash_of(bytes)};
  for (const ByteSpan piece : bytes) {
    entry.bytes += static_cast<std::int64_t>(piece.size());
  }
  files.write_file(path_in(unfinished, name), bytes);
  return entry;
}

Publication::Publication(FileSystem& files, std::string folder, std::int64_t step)
    : files_(files), folder_(std::move(folder)), step_(step), lock_(made(files_, folder_)) {
  remove_unfinished();
  files_.make_folder(unfinished_path(folder_, step_));
}

Publication::~Publication() {
  try {
    remove_unfinished();
  } catch (const Error&) {
    // The next writer removes it; the failure that led here is the one to tell.
  }
}

void Publication::remove_unfinished() {
  for (const std::string& name : unfinished_steps(folder_)) {
    files_.remove_folder(path_in(folder_, name));
  }
}

std::string Publication::publish(const Manifest& manifest) {
  LOCKSTEP_INVARIANT(manifest.step, ==, step_);
  const std::string unfinished = unfinished_path(folder_, step_);
  const std::string text = text_of(manifest);
  const std::array pieces{bytes_of(text)};
  files_.write_file(path_in(unfinished, std::string(kManifestName)), pieces);
  files_.flush_folder(unfinished);
  std::string published = path_in(folder_, step_folder_name(step_));
  if (std::filesystem::exists(published)) {
    files_.exchange(unfinished, published);
    files_.flush_folder(folder_);
    files_.remove_folder(unfinished);
  } else {
    files_.rename(unfinished, published);
    files_.flush_folder(folder_);
  }
  return published;
}

void Publication::keep_newest(std::int64_t count) {
  LOCKSTEP_INVARIANT(count, >=, 1);
  std::vector<std::int64_t> steps = saved_steps(folder_);
  for (std::size_t i = 0; i + static_cast<std::size_t>(count) < steps.size(); ++i) {
    // Out of sight first: half a step must never look like one.
    const std::string leaving = unfinished_path(folder_, steps[i]);
    files_.rename(path_in(folder_, step_folder_name(steps[i])), leaving);
    files_.remove_folder(leaving);
  }
}

}  // namespace lockstep::checkpoint
