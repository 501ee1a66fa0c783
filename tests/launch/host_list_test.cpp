#include "launch/host_list.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::launch {
namespace {

using Hosts = std::vector<HostRanks>;

TEST(HostList, slots_are_the_ranks_of_each_host) {
  EXPECT_EQ(hosts_of("a:2,b.example.org:1", std::nullopt), (Hosts{{"a", 2}, {"b.example.org", 1}}));
  EXPECT_EQ(hosts_of("10.77.0.1:2,10.77.0.2:2", 4), (Hosts{{"10.77.0.1", 2}, {"10.77.0.2", 2}}));
  EXPECT_EQ(ranks_on(hosts_of("a:2,b:1", std::nullopt)), 3);
}

TEST(HostList, without_slots_each_host_gets_the_same_share) {
  EXPECT_EQ(hosts_of("a,b", 4), (Hosts{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(hosts_of("b,a", std::nullopt), (Hosts{{"b", 1}, {"a", 1}}));
}

TEST(HostList, a_file_has_a_host_on_each_line) {
  const test::TemporaryFolder folder;
  const std::string file =
      folder.write("hosts", "# the cluster\na slots=2\n\n  b:3  # the big one\r\nc slots = 1");
  EXPECT_EQ(hosts_of(file, std::nullopt), (Hosts{{"a", 2}, {"b", 3}, {"c", 1}}));
}

struct Wrong {
  std::string text;
  std::optional<int> ranks;
  std::string says;
};

TEST(HostList, what_is_wrong_is_named_with_the_way_out) {
  const test::TemporaryFolder folder;
  const std::string empty = folder.write("hosts", "# nobody\n");
  for (const Wrong& wrong : std::vector<Wrong>{
           {"", {}, "got ''"},
           {"a,,b", {}, "got ''"},
           {"a b", {}, "got 'a b'"},
           {"--x", {}, "got '--x'"},
           {"a:2:3", {}, "slots of 'a': expected a whole number from 1 to 1024, got '2:3'"},
           {"a:0", {}, "got '0'"},
           {"a:", {}, "got ''"},
           {"a:1025", {}, "got '1025'"},
           {"a:2,b", {}, "'b' has no slots"},
           {"a,b,a", {}, "'a' stands twice"},
           {"a,b", 3, "a multiple of 2"},
           {"a:2,b:2", 3, "4 slots, but --ranks 3"},
           {"./no/such", {}, "can't read the file './no/such'"},
           {folder.path() + "/", {}, "can't read the file"},
           {empty, {}, "no host in the file"},
       }) {
    const std::string error =
        test::error_of<UsageError>([&] { hosts_of(wrong.text, wrong.ranks); });
    EXPECT_EQ(error.find("--hosts: "), 0u) << error;
    EXPECT_NE(error.find(wrong.says), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(HostList, hosts_without_an_address_are_named) {
  EXPECT_NO_THROW(require_known(hosts_of("127.0.0.1:1,localhost:1", std::nullopt)));
  const std::string error = test::error_of<UsageError>(
      [] { require_known(hosts_of("127.0.0.1,no-such-host.invalid", std::nullopt)); });
  EXPECT_NE(error.find("'no-such-host.invalid'"), std::string::npos) << error;
}

}  // namespace
}  // namespace lockstep::launch
