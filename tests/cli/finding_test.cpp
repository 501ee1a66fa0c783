#include "cli/finding.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace lockstep::cli {
namespace {

std::vector<Finding> some_findings() {
  return {{"cores", Verdict::ok, "2 usable", ""},
          {"huge pages", Verdict::warn, "never", "write advise"},
          {"shared memory", Verdict::fail, "mmap: refused", "allow it"}};
}

TEST(Finding, TheWorstDecides) {
  std::vector<Finding> findings = some_findings();
  EXPECT_EQ(worst(findings), Verdict::fail);
  findings.pop_back();
  EXPECT_EQ(worst(findings), Verdict::warn);
  findings.pop_back();
  EXPECT_EQ(worst(findings), Verdict::ok);
  EXPECT_EQ(worst({}), Verdict::ok);
}

TEST(Finding, TextHasALineEachAndTheFixBelow) {
  EXPECT_EQ(findings_text(some_findings()),
            "ok    cores           2 usable\n"
            "warn  huge pages      never\n"
            "                      fix: write advise\n"
            "fail  shared memory   mmap: refused\n"
            "                      fix: allow it\n"
            "1 failure, 1 warning\n");
  EXPECT_EQ(findings_text({}), "0 failures, 0 warnings\n");
}

TEST(Finding, JsonHoldsTheSame) {
  const nlohmann::json json = findings_json(some_findings());
  EXPECT_EQ(json["version"], LOCKSTEP_VERSION);
  EXPECT_EQ(json["verdict"], "fail");
  ASSERT_EQ(json["findings"].size(), 3u);
  EXPECT_EQ(json["findings"][1], (nlohmann::json{{"name", "huge pages"},
                                                 {"verdict", "warn"},
                                                 {"found", "never"},
                                                 {"fix", "write advise"}}));
}

}  // namespace
}  // namespace lockstep::cli
