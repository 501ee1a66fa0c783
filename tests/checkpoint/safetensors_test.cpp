#include "checkpoint/safetensors.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace lockstep::checkpoint {
namespace {

using test::contents_of;
using test::error_of;
using test::TemporaryFolder;

constexpr std::array<float, 3> kValues{1.0f, -2.5f, 0.0f};
constexpr std::array<std::uint16_t, 2> kHalves{0x3f80, 0xc000};

std::vector<NamedTensor> two_tensors() {
  return {{"b", Dtype::f32, {1, 3}, kValues.data()}, {"a", Dtype::bf16, {2}, kHalves.data()}};
}

std::string length_of(const std::string& header) {
  const std::uint64_t length = header.size();
  return {reinterpret_cast<const char*>(&length), 8};
}

// A file by hand, as the format's own page describes it.
std::string by_hand(const std::string& header, const std::string& data) {
  return length_of(header) + header + data;
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  write_safetensors(folder.file("w"), two_tensors(), {{"format", "pt"}});
  std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"F32","shape":[1,3],"data_offsets":[4,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string data(16, '\0');
  std::memcpy(data.data(), kHalves.data(), 4);
  std::memcpy(data.data() + 4, kValues.data(), 12);
  EXPECT_EQ(contents_of(folder.file("w")), by_hand(header, data));
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  write_safetensors(folder.file("w"), two_tensors(), {{"model", "m"}});
  const SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(file.metadata().at("model"), "m");
  ASSERT_EQ(file.tensors().size(), 2u);
  const NamedTensor& b = file.tensors().at("b");
  EXPECT_EQ(b.dtype, Dtype::f32);
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(std::memcmp(b.data, kValues.data(), sizeof kValues), 0);
  const NamedTensor& a = file.tensors().at("a");
  EXPECT_EQ(a.dtype, Dtype::bf16);
  EXPECT_EQ(std::memcmp(a.data, kHalves.data(), sizeof kHalves), 0);
}

TEST(Safetensors, HoldsScalarsAndEmptyTensors) {
  const TemporaryFolder folder;
  write_safetensors(folder.file("w"), {{"scalar", Dtype::f32, {}, kValues.data()},
                                       {"empty", Dtype::f32, {0, 3}, kValues.data()}});
  const SafetensorsFile file(folder.file("w"));
  EXPECT_EQ(file.tensors().at("scalar").count(), 1);
  EXPECT_EQ(file.tensors().at("empty").count(), 0);
}

TEST(Safetensors, KnowsEveryDtypeOfOurs) {
  const TemporaryFolder folder;
  constexpr std::array<double, 1> kBytes{-1.25};
  const std::array dtypes{Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16,
                          Dtype::i32, Dtype::i64, Dtype::u8};
  std::vector<NamedTensor> tensors;
  for (const Dtype dtype : dtypes) {
    tensors.push_back({std::string(name_of(dtype)), dtype, {1}, kBytes.data()});
  }
  write_safetensors(folder.file("w"), tensors);
  const SafetensorsFile file(folder.file("w"));
  for (const Dtype dtype : dtypes) {
    const NamedTensor& tensor = file.tensors().at(std::string(name_of(dtype)));
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_EQ(std::memcmp(tensor.data, kBytes.data(), static_cast<std::size_t>(size_of(dtype))), 0);
  }
  const SafetensorsFile truths(
      folder.write("b", by_hand(R"({"t":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})",
                                std::string("\1\0", 2))));
  EXPECT_EQ(truths.tensors().at("t").dtype, Dtype::u8);
}

TEST(Safetensors, RefusesNamesUsedTwice) {
  const TemporaryFolder folder;
  const auto write = [&](std::vector<NamedTensor> tensors) {
    return error_of<UsageError>([&] { write_safetensors(folder.file("w"), tensors); });
  };
  EXPECT_EQ(write({{"t", Dtype::f32, {}, kValues.data()}, {"t", Dtype::f32, {}, kValues.data()}}),
            "safetensors: two tensors are called 't'");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(SafetensorsImage, IsTheFileInPieces) {
  const TemporaryFolder folder;
  write_safetensors(folder.file("w"), two_tensors(), {{"format", "pt"}});
  const SafetensorsImage image(two_tensors(), {{"format", "pt"}});
  std::string bytes;
  for (const ByteSpan piece : image.pieces()) {
    bytes.append(piece.begin(), piece.end());
  }
  EXPECT_EQ(bytes, contents_of(folder.file("w")));
}

std::string refusal(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.write("damaged", bytes);
  const std::string text = error_of<Error>([&] { SafetensorsFile file(path); });
  EXPECT_EQ(text.find(path), 0u) << text;
  return text.substr(path.size());
}

// Case K44: a truncated file names the file, what was expected and what is there.
TEST(Safetensors, K44_a_truncated_file_says_how_much_is_missing) {
  const TemporaryFolder folder;
  write_safetensors(folder.file("w"), two_tensors());
  const std::string whole = contents_of(folder.file("w"));
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    const std::string text = refusal(folder, whole.substr(0, kept));
    EXPECT_NE(text.find("not a complete safetensors file"), std::string::npos) << text;
  }
  EXPECT_EQ(refusal(folder, whole.substr(0, whole.size() - 1)),
            ": not a complete safetensors file: tensor 'b' ends at byte 16 of its data, which has "
            "15");
}

TEST(Safetensors, NamesWhatIsWrongWithAHeader) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder, by_hand("not json", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(refusal(folder, by_hand(R"({"t":{"dtype":"F32"}})", "")).find("'t' lacks"),
            std::string::npos);
  EXPECT_NE(refusal(folder,
                    by_hand(R"({"t":{"dtype":"I4","shape":[],"data_offsets":[0,8]}})", "12345678"))
                .find("dtype I4; expected F32, BF16, F16"),
            std::string::npos);
  EXPECT_NE(refusal(folder, by_hand(R"({"t":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
                                    "12345678"))
                .find("expected 12 bytes, its offsets span 8"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::checkpoint
