// The safetensors format: 8 bytes little-endian header length, a JSON header, the tensors' bytes.
// Source: https://github.com/huggingface/safetensors, "Format". Of its types those of
// lockstep/dtype.h are known here; booleans are read as u8.
#pragma once

#include "checkpoint/bytes.h"
#include "checkpoint/mapped_file.h"
#include "lockstep/dtype.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

// A tensor in memory: contiguous, row-major, little-endian. Does not own.
struct NamedTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;

  std::int64_t count() const;  // elements; 1 for a scalar
  std::int64_t bytes() const { return count() * size_of(dtype); }
};

// A file that is not written yet: tensors in bytewise name order, so equal tensors give equal
// bytes; the header is padded with spaces to a multiple of 8, `metadata` becomes __metadata__.
// Points at the tensors' data, copies none.
class SafetensorsImage {
 public:
  // Throws UsageError for a name used twice.
  explicit SafetensorsImage(std::vector<NamedTensor> tensors,
                            const std::map<std::string, std::string>& metadata = {});
  // The file's bytes in order: the head, then each tensor; valid as long as this object and the
  // tensors.
  std::vector<ByteSpan> pieces() const;
  // What comes before the tensors' bytes, whatever these will be.
  std::string_view head() const { return head_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::string head_;
};

// Writes such a file. Throws UsageError for a name used twice, SystemError naming the file; nothing
// half-written stays.
void write_safetensors(const std::string& path, std::vector<NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// A file opened for reading; its tensors point into the mapping and live as long as it does.
class SafetensorsFile {
 public:
  // Throws SystemError when the file can't be read, and Error naming file, expected and actual size
  // when it is cut short or not in the format.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  // By name, in bytewise name order.
  const std::map<std::string, NamedTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::string path_;
  MappedFile file_;
  std::map<std::string, NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace lockstep::checkpoint
