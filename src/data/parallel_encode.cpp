#include "data/parallel_encode.h"

#include "base/invariant.h"

#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::data {
namespace {

// Encoders keep the words they have seen, so they go from part to part.
class EncoderPool {
 public:
  explicit EncoderPool(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::vector<TokenId> encode(std::string_view text) {
    std::unique_ptr<Encoder> encoder = take();
    std::vector<TokenId> ids;
    encoder->encode(text, ids);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(encoder));
    return ids;
  }

 private:
  std::unique_ptr<Encoder> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      return tokenizer_.encoder();
    }
    std::unique_ptr<Encoder> encoder = std::move(idle_.back());
    idle_.pop_back();
    return encoder;
  }

  const Tokenizer& tokenizer_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Encoder>> idle_;
};

struct Running {
  std::size_t end = 0;  // of the part
  std::future<std::vector<TokenId>> ids;
};

}  // namespace

void encode_parallel(const Tokenizer& tokenizer, std::string_view text,
                     const EncodeOptions& options,
                     const std::function<void(std::span<const TokenId>)>& sink) {
  LOCKSTEP_INVARIANT(options.threads, >=, 1);
  EncoderPool pool(tokenizer);
  std::deque<Running> running;  // goes before the pool: destroying a future waits for its thread
  const auto finish_first = [&] {
    const std::vector<TokenId> ids = running.front().ids.get();
    const std::size_t end = running.front().end;
    running.pop_front();
    sink(ids);
    if (options.on_progress) {
      options.on_progress(static_cast<std::int64_t>(end));
    }
  };
  if (options.on_progress) {
    options.on_progress(0);
  }
  std::size_t begin = 0;
  for (const std::size_t end : tokenizer.parts(text, options.part_bytes)) {
    if (running.size() == static_cast<std::size_t>(options.threads)) {
      finish_first();
    }
    const std::string_view part = text.substr(begin, end - begin);
    running.push_back(
        {end, std::async(std::launch::async, [&pool, part] { return pool.encode(part); })});
    begin = end;
  }
  while (!running.empty()) {
    finish_first();
  }
}

}  // namespace lockstep::data
