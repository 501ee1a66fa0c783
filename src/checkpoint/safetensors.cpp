#include "checkpoint/safetensors.h"

#include "checkpoint/pending_file.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

namespace lockstep::checkpoint {
namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

constexpr std::int64_t kLengthBytes = 8;

struct Spelling {
  std::string_view name;  // in the format
  Dtype dtype;
};
// The first of a dtype is the one that is written.
constexpr std::array kSpellings{Spelling{"F32", Dtype::f32}, Spelling{"BF16", Dtype::bf16},
                                Spelling{"F16", Dtype::f16}, Spelling{"F64", Dtype::f64},
                                Spelling{"I64", Dtype::i64}, Spelling{"I32", Dtype::i32},
                                Spelling{"U8", Dtype::u8},   Spelling{"BOOL", Dtype::u8}};

std::string dtype_name(Dtype dtype) {
  return std::string(std::ranges::find(kSpellings, dtype, &Spelling::dtype)->name);
}

std::string header_of(std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  std::int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    if (header.contains(tensor.name)) {
      throw UsageError("safetensors: two tensors are called '" + tensor.name + "'");
    }
    header[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

[[noreturn]] void malformed(const std::string& path, const std::string& what) {
  throw Error(path + ": not a complete safetensors file: " + what);
}

json parse_header(const std::string& path, std::span<const std::uint8_t> bytes,
                  std::int64_t& data_begin) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  std::uint64_t length = 0;
  if (size < kLengthBytes) {
    malformed(path, "expected at least 8 bytes, got " + std::to_string(size));
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(size - kLengthBytes)) {
    malformed(path, "expected " + std::to_string(length) + " bytes of header, got " +
                        std::to_string(size - kLengthBytes));
  }
  data_begin = kLengthBytes + static_cast<std::int64_t>(length);
  json header = json::parse(bytes.begin() + kLengthBytes, bytes.begin() + data_begin, nullptr,
                            /*allow_exceptions=*/false);
  if (!header.is_object()) {
    malformed(path, "its header is not a JSON object");
  }
  return header;
}

Dtype dtype_of(const std::string& path, const std::string& name, const std::string& text) {
  const auto* const found = std::ranges::find(kSpellings, text, &Spelling::name);
  if (found == kSpellings.end()) {
    throw Error(path + ": tensor '" + name + "' has dtype " + text +
                "; expected F32, BF16, F16, F64, I64, I32, U8 or BOOL");
  }
  return found->dtype;
}

// One entry of the header, checked against the bytes that are there.
NamedTensor tensor_of(const std::string& path, const std::string& name, const json& entry,
                      std::span<const std::uint8_t> data) {
  NamedTensor tensor;
  std::array<std::int64_t, 2> offsets{};
  try {
    tensor.name = name;
    tensor.dtype = dtype_of(path, name, entry.at("dtype").get<std::string>());
    tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
    offsets = entry.at("data_offsets").get<std::array<std::int64_t, 2>>();
  } catch (const json::exception&) {
    malformed(path, "the header's entry of '" + name + "' lacks dtype, shape or data_offsets");
  }
  const auto held = static_cast<std::int64_t>(data.size());
  if (offsets[0] < 0 || offsets[1] - offsets[0] != tensor.bytes()) {
    malformed(path, "tensor '" + name + "': expected " + std::to_string(tensor.bytes()) +
                        " bytes, its offsets span " + std::to_string(offsets[1] - offsets[0]));
  }
  if (offsets[1] > held) {
    malformed(path, "tensor '" + name + "' ends at byte " + std::to_string(offsets[1]) +
                        " of its data, which has " + std::to_string(held));
  }
  tensor.data = data.data() + offsets[0];
  return tensor;
}

}  // namespace

std::int64_t NamedTensor::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

SafetensorsImage::SafetensorsImage(std::vector<NamedTensor> tensors,
                                   const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)) {
  std::ranges::sort(tensors_, {}, &NamedTensor::name);
  const std::string header = header_of(tensors_, metadata);
  const std::uint64_t length = header.size();
  head_.assign(reinterpret_cast<const char*>(&length), sizeof length);
  head_ += header;
}

std::vector<ByteSpan> SafetensorsImage::pieces() const {
  std::vector<ByteSpan> pieces{bytes_of(head_)};
  for (const NamedTensor& tensor : tensors_) {
    pieces.emplace_back(static_cast<const std::uint8_t*>(tensor.data),
                        static_cast<std::size_t>(tensor.bytes()));
  }
  return pieces;
}

void write_safetensors(const std::string& path, std::vector<NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const SafetensorsImage image(std::move(tensors), metadata);
  PendingFile file(path);
  for (const ByteSpan piece : image.pieces()) {
    file.write(piece.data(), static_cast<std::int64_t>(piece.size()));
  }
  file.publish();
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), file_(path) {
  std::int64_t data_begin = 0;
  const json header = parse_header(path, file_.bytes(), data_begin);
  const auto data = file_.bytes().subspan(static_cast<std::size_t>(data_begin));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = entry.get<std::map<std::string, std::string>>();
    } else {
      tensors_.emplace(name, tensor_of(path, name, entry, data));
    }
  }
}

}  // namespace lockstep::checkpoint
