#include "checkpoint/manifest.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;

Manifest some_manifest() {
  Manifest manifest;
  manifest.step = 20;
  manifest.optimizer = "adamw";
  manifest.optimizer_steps = {{"w", 19}, {"b", 20}};
  manifest.arrays = {{"parameter", "w", Dtype::f32, {2, 3}}, {"buffer", "count", Dtype::i64, {}}};
  manifest.files = {{"model-1-of-1.safetensors", 123, "00ff"}};
  manifest.user = R"({"z":1,"a":{"lr":0.1}})";
  return manifest;
}

std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("manifest.json", text);
  const std::string error = error_of<Error>([&] { read_manifest(folder.path()); });
  EXPECT_EQ(error.find(folder.file("manifest.json")), 0u) << error;
  return error;
}

TEST(Manifest, ReadsBackAndGivesTheSameText) {
  const TemporaryFolder folder;
  const std::string text = text_of(some_manifest());
  folder.write("manifest.json", text);
  const Manifest read = read_manifest(folder.path());
  EXPECT_EQ(read.step, 20);
  EXPECT_EQ(read.optimizer, "adamw");
  EXPECT_EQ(read.optimizer_steps, some_manifest().optimizer_steps);
  EXPECT_EQ(read.arrays, some_manifest().arrays);
  ASSERT_EQ(read.files.size(), 1u);
  EXPECT_EQ(read.files[0].name, "model-1-of-1.safetensors");
  EXPECT_EQ(read.files[0].bytes, 123);
  EXPECT_EQ(read.files[0].hash, "00ff");
  EXPECT_EQ(read.user, some_manifest().user);
  EXPECT_EQ(text_of(read), text);
}

TEST(Manifest, AnyOtherByteIsSeen) {
  const std::string text = text_of(some_manifest());
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if (text[i] != ' ' && text[i] != '\n') {
      std::string other = text;
      other[i] = other[i] == '1' ? '2' : '1';
      EXPECT_NE(refusal(other), "") << "byte " << i;
    }
  }
}

TEST(Manifest, WhatIsWrongIsNamed) {
  EXPECT_NE(refusal("").find("not a JSON object"), std::string::npos);
  EXPECT_NE(refusal("{}").find("no manifest of a checkpoint"), std::string::npos);
  EXPECT_NE(refusal(R"({"format":"lockstep checkpoint","version":2})")
                .find("format version 2, this Lockstep reads version 1"),
            std::string::npos);
  std::string other_step = text_of(some_manifest());
  other_step.replace(other_step.find("\"step\": 20"), 10, "\"step\": 30");
  EXPECT_NE(refusal(other_step).find("its own hash is"), std::string::npos);
  const TemporaryFolder folder;
  EXPECT_NE(error_of<Error>([&] { read_manifest(folder.path()); }).find("is missing"),
            std::string::npos);
}

TEST(Piece, IsNamedByArrayAndRange) {
  EXPECT_EQ(text_of(Piece{"exp_avg", "h.0.w", {64, 128}}), "exp_avg/h.0.w[64:128]");
  const Piece piece = piece_of("f", "parameter/odd[0]:name/x[5:5]");
  EXPECT_EQ(piece.slot, "parameter");
  EXPECT_EQ(piece.name, "odd[0]:name/x");
  EXPECT_EQ(piece.elements, (Range{5, 5}));
  for (const char* const text :
       {"", "w", "s/w", "s/w[1]", "s/w[1:x]", "s/w[2:1]", "s/w[1:2", "s/w[-1:2]", "[1:2]/w"}) {
    EXPECT_EQ(error_of<Error>([&] { piece_of("file", text); }).find("file: damaged"), 0u) << text;
  }
}

TEST(StateArray, IsShownAsPeopleSayIt) {
  const StateArray moment{"exp_avg", "w", Dtype::f32, {2, 3}};
  EXPECT_EQ(moment.title(), "exp_avg of 'w'");
  EXPECT_EQ(moment.form(), "f32 [2, 3]");
  EXPECT_EQ(moment.count(), 6);
  const StateArray scalar{"buffer", "n", Dtype::i64, {}};
  EXPECT_EQ(scalar.title(), "buffer 'n'");
  EXPECT_EQ(scalar.form(), "i64 []");
  EXPECT_EQ(scalar.count(), 1);
}

TEST(UserText, IsAJsonObject) {
  EXPECT_NO_THROW(check_user_text(R"({"epoch": 3})"));
  for (const char* const text : {"", "3", "[1]", "{"}) {
    EXPECT_THROW(check_user_text(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
