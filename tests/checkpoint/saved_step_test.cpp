#include "checkpoint/saved_step.h"

#include "checkpoint/small_state.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep::checkpoint {
namespace {

using test::contents_of;
using test::error_of;
using test::TemporaryFolder;

// A saved step to damage.
struct Saved {
  TemporaryFolder folder;
  std::string path;
  Saved() {
    Disk disk;
    path = SmallState(3).save(disk, folder.path());
  }
  std::string file(const std::string& name) const { return path + "/" + name; }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
  }
  // What reading it all says; "whole" when nothing is wrong.
  std::string refusal() const {
    try {
      SmallState(3).expect_saved(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "whole";
  }
};

constexpr const char* kFile = "half-50.safetensors";

TEST(SavedStep, ReadsWhatWasSaved) { EXPECT_EQ(Saved().refusal(), "whole"); }

TEST(SavedStep, K44_a_file_cut_short_is_named_with_both_sizes) {
  const Saved saved;
  const std::string bytes = contents_of(saved.file(kFile));
  saved.write(kFile, bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(saved.refusal(), saved.file(kFile) + ": expected " + std::to_string(bytes.size()) +
                                 " bytes, got " + std::to_string(bytes.size() - 1) +
                                 "; remove the folder to use an older step");
}

TEST(SavedStep, AnyOtherByteIsDamage) {
  const Saved saved;
  const std::string bytes = contents_of(saved.file(kFile));
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 1);
    saved.write(kFile, other);
    EXPECT_EQ(saved.refusal().find(saved.file(kFile) + ": damaged: expected xxh3_128 "), 0u) << i;
  }
}

TEST(SavedStep, WhatIsMissingOrExtraIsNamed) {
  const Saved missing;
  std::filesystem::remove(missing.file(kFile));
  EXPECT_EQ(missing.refusal().find(missing.file(kFile) + ": is missing"), 0u);
  const Saved extra;
  extra.write("notes.txt", "x");
  EXPECT_EQ(extra.refusal().find(extra.file("notes.txt") + ": is not in the manifest"), 0u);
  const Saved bare;
  std::filesystem::remove(bare.file("manifest.json"));
  EXPECT_EQ(bare.refusal().find(bare.file("manifest.json") + ": is missing"), 0u);
}

TEST(SavedStep, RanksShareTheHashingOut) {
  const Saved saved;
  std::string bytes = contents_of(saved.file(kFile));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  saved.write(kFile, bytes);
  const SavedStep step(saved.path);
  EXPECT_NO_THROW(step.verify(0, 2));
  EXPECT_THROW(step.verify(1, 2), Error);
  EXPECT_NO_THROW(step.verify(2, 3));
}

TEST(SavedStep, AnotherModelIsNamedByItsFirstDifference) {
  const Saved saved;
  const SavedStep step(saved.path);
  const auto refusal = [&](const std::function<void(std::vector<StateArray>&)>& change) {
    std::vector<StateArray> arrays = SmallState(3).arrays();
    change(arrays);
    return error_of<UsageError>([&] { step.check_holds(arrays); });
  };
  EXPECT_EQ(refusal([](auto& arrays) {
              arrays.push_back({"parameter", "v", Dtype::f32, {7}});
            }),
            saved.path +
                ": expected parameter 'v' (f32 [7]), found none; build the model that "
                "was saved");
  EXPECT_EQ(refusal([](auto& arrays) {
              arrays[1].shape = {2, 50};
            }),
            saved.path +
                ": exp_avg of 'w': expected f32 [2, 50], found f32 [50, 2]; build the "
                "model that was saved");
  EXPECT_NE(refusal([](auto& arrays) {
              arrays[0].dtype = Dtype::f64;
            }).find("parameter 'w': expected f64 [50, 2], found f32 [50, 2]"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& arrays) {
              arrays.pop_back();
            }).find("holds exp_avg of 'w' (f32 [50, 2]), which the model has not"),
            std::string::npos);
}

// A step whose one array lies in `parts`, each in a file of its own.
std::string save_parts(const TemporaryFolder& folder, const std::vector<Range>& parts,
                       const std::vector<float>& values) {
  Disk disk;
  Publication publication(disk, folder.path(), 1);
  Manifest manifest;
  manifest.step = 1;
  manifest.arrays = {{"parameter", "w", Dtype::f32, {static_cast<std::int64_t>(values.size())}},
                     {"parameter", "empty", Dtype::f32, {0, 4}}};
  for (const Range part : parts) {
    manifest.files.push_back(write_share(disk, unfinished_path(folder.path(), 1),
                                         "part-" + std::to_string(manifest.files.size()),
                                         {{text_of(Piece{"parameter", "w", part}),
                                           Dtype::f32,
                                           {part.size()},
                                           values.data() + part.begin}}));
  }
  return publication.publish(manifest);
}

TEST(SavedArrays, AnyElementsComeFromWhicheverFilesHoldThem) {
  std::vector<float> values(10);
  std::iota(values.begin(), values.end(), 1.0f);
  for (const std::vector<Range>& parts :
       {std::vector<Range>{{0, 10}}, {{0, 3}, {3, 6}, {6, 9}, {9, 10}}, {{7, 10}, {0, 7}}}) {
    const TemporaryFolder folder;
    const SavedStep step(save_parts(folder, parts, values));
    const SavedArrays saved(step);
    const StateArray& array = step.manifest().arrays[0];
    for (std::int64_t begin = 0; begin <= 10; ++begin) {
      for (std::int64_t end = begin; end <= 10; ++end) {
        std::vector<float> read(static_cast<std::size_t>(end - begin) + 1, -1.0f);
        saved.read(array, {begin, end}, read.data());
        std::vector<float> expected(values.begin() + begin, values.begin() + end);
        expected.push_back(-1.0f);  // and no byte behind it
        EXPECT_EQ(read, expected) << begin << ":" << end;
      }
    }
    saved.read(step.manifest().arrays[1], {0, 0}, nullptr);
  }
}

TEST(SavedArrays, ElementsThatAreMissingOrTwiceThereAreNamed) {
  const std::vector<float> values(10);
  const auto refusal = [&](const std::vector<Range>& parts) {
    const TemporaryFolder folder;
    const SavedStep step(save_parts(folder, parts, values));
    return error_of<Error>([&] { SavedArrays saved(step); });
  };
  EXPECT_NE(refusal({{0, 9}}).find("parameter 'w': expected 10 elements, found 9"),
            std::string::npos);
  EXPECT_NE(refusal({}).find("expected 10 elements, found 0"), std::string::npos);
  EXPECT_NE(refusal({{0, 3}, {4, 10}}).find("expected the elements from 3 on, found [4:10]"),
            std::string::npos);
  EXPECT_NE(refusal({{0, 5}, {4, 10}}).find("expected the elements from 5 on, found [4:10]"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::checkpoint
