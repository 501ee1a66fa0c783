#include "bench/tokenize/measure.h"

#include "bench/common/temporary_folder.h"
#include "bench/tokenize/corpus.h"
#include "checkpoint/mapped_file.h"
#include "data/gpt2_files.h"
#include "data/parallel_encode.h"
#include "data/text_source.h"
#include "launch/launcher.h"
#include "lockstep/error.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::bench {
namespace {

using data::TokenId;
using Ids = std::vector<TokenId>;

std::string_view text_in(const checkpoint::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

template <class Value>
void write_all(const std::string& path, const Value& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(values[0])));
}

// The text, in memory for us and in files for tiktoken, with the places where both take it apart.
class Session {
 public:
  explicit Session(const TokenizeOptions& options)
      : options_(options), tokenizer_(data::read_gpt2(data::gpt2_folder())) {
    const checkpoint::MappedFile plays(data::resolve("text"));
    text_ = varied_text(text_in(plays), static_cast<std::size_t>(options.bytes));
    write_all(folder_.file("text"), text_);
    const data::EncodeOptions defaults;
    write_all(folder_.file("ends"), tokenizer_.parts(text_, defaults.part_bytes));
  }

  std::int64_t bytes() const { return static_cast<std::int64_t>(text_.size()); }

  Ids encode() const {
    Ids ids;
    data::encode_parallel(
        tokenizer_, text_, {.threads = options_.threads, .on_progress = {}},
        [&](std::span<const TokenId> more) { ids.insert(ids.end(), more.begin(), more.end()); });
    return ids;
  }

  double time_ours() const {
    const auto start = std::chrono::steady_clock::now();
    encode();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Seconds inside of its encode_ordinary_batch(), which leaves its ids in theirs().
  double time_theirs(const char* also) const {
    launch::LaunchOptions launch;
    launch.ranks = 1;
    launch.threads = options_.threads;
    launch.command = {options_.python,     LOCKSTEP_BENCH_TIKTOKEN,          folder_.file("."),
                      data::gpt2_folder(), std::to_string(options_.threads), also};
    if (launch::launch(launch) != 0) {
      throw Error("tiktoken's side failed; see above");
    }
    double seconds = 0;
    if (!(std::ifstream(folder_.file("seconds")) >> seconds)) {
      throw Error("tiktoken's side left no time");
    }
    return seconds;
  }

  Ids theirs() const {
    const checkpoint::MappedFile file(folder_.file("ids"));
    Ids ids(file.bytes().size() / sizeof(TokenId));
    std::ranges::copy(file.bytes(), reinterpret_cast<std::uint8_t*>(ids.data()));
    return ids;
  }

 private:
  TokenizeOptions options_;
  data::BpeTokenizer tokenizer_;
  std::string text_;
  TemporaryFolder folder_;
};

std::int64_t verified_tokens(const Session& session) {
  const Ids ours = session.encode();
  session.time_theirs("ids");
  const Ids theirs = session.theirs();
  const auto [mine, other] = std::ranges::mismatch(ours, theirs);
  if (mine != ours.end() || other != theirs.end()) {
    throw Error("token " + std::to_string(mine - ours.begin()) + " differs from tiktoken's; ours " +
                std::to_string(ours.size()) + ", theirs " + std::to_string(theirs.size()) +
                " tokens in all");
  }
  return static_cast<std::int64_t>(ours.size());
}

}  // namespace

TokenizeAnswer measure_tokenizing(const TokenizeOptions& options,
                                  const std::function<void(const TokenizeRound&)>& on_round) {
  const Session session(options);
  TokenizeAnswer answer;
  answer.bytes = session.bytes();
  answer.tokens = verified_tokens(session);
  std::vector<double> ratios;
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    const TokenizeRound times{session.time_ours(), session.time_theirs("time")};
    answer.rounds.push_back(times);
    ratios.push_back(times.lockstep_s / times.tiktoken_s);
    on_round(times);
  }
  answer.ratio = spread_of(ratios);
  return answer;
}

}  // namespace lockstep::bench
