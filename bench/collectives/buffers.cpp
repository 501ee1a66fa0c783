#include "bench/collectives/buffers.h"

#include "base/range.h"
#include "lockstep/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace lockstep::bench {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t elements(const Question& question) { return question.bytes / size_of(question.dtype); }

ReduceOptions mean_by(Algorithm algorithm) {
  return {.op = ReduceOp::mean, .algorithm = algorithm};
}

class SymmetricBuffers final : public Buffers {
 public:
  SymmetricBuffers(Group& group, const Question& question, std::int64_t count)
      : group_(group),
        question_(question),
        stride_(round_up(question.bytes, kPage)),
        memory_(group.allocate_symmetric(stride_ * count, "bench")) {}

  std::span<std::byte> bytes(std::int64_t buffer) override {
    return {static_cast<std::byte*>(span(buffer).data()),
            static_cast<std::size_t>(question_.bytes)};
  }

  void run(std::int64_t buffer) override {
    const SymmetricSpan whole = span(buffer);
    switch (question_.collective) {
      case Collective::all_reduce:
        group_.all_reduce(whole, mean_by(question_.algorithm)).wait();
        return;
      case Collective::reduce_scatter: {
        const Range own = block_of(whole.count, group_.size(), group_.rank());
        group_
            .reduce_scatter(whole, whole.subspan(own.begin, own.end).local(),
                            mean_by(question_.algorithm))
            .wait();
        return;
      }
      case Collective::all_gather:
        group_.all_gather(whole, {.algorithm = question_.algorithm}).wait();
        return;
    }
  }

 private:
  SymmetricSpan span(std::int64_t buffer) const {
    return memory_.span(buffer * stride_, elements(question_), question_.dtype);
  }

  Group& group_;
  Question question_;
  std::int64_t stride_;
  SymmetricMemory memory_;
};

class PlainBuffers final : public Buffers {
 public:
  PlainBuffers(Group& group, const Question& question, std::int64_t count)
      : group_(group),
        question_(question),
        stride_(round_up(question.bytes, kPage)),
        memory_(allocate(stride_ * count)) {}

  std::span<std::byte> bytes(std::int64_t buffer) override {
    return {memory_.get() + buffer * stride_, static_cast<std::size_t>(question_.bytes)};
  }

  void run(std::int64_t buffer) override {
    const Span whole(bytes(buffer).data(), elements(question_), question_.dtype);
    const Range own = block_of(whole.count, group_.size(), group_.rank());
    const Span block(bytes(buffer).data() + own.begin * size_of(whole.dtype), own.size(),
                     whole.dtype);
    switch (question_.collective) {
      case Collective::all_reduce:
        group_.all_reduce(whole, mean_by(question_.algorithm)).wait();
        return;
      case Collective::reduce_scatter:
        group_.reduce_scatter(whole, block, mean_by(question_.algorithm)).wait();
        return;
      case Collective::all_gather:
        group_.all_gather(block, whole, {.algorithm = question_.algorithm}).wait();
        return;
    }
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  static Memory allocate(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    Memory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, size)));
    if (memory == nullptr) {
      throw SystemError("no memory for " + std::to_string(bytes) +
                        " bytes of buffers; use smaller --sizes");
    }
    std::memset(memory.get(), 0, size);  // its pages exist before anything is timed
    return memory;
  }

  Group& group_;
  Question question_;
  std::int64_t stride_;
  Memory memory_;
};

}  // namespace

std::int64_t rotation(std::int64_t bytes, int ranks, std::int64_t cache_bytes) {
  constexpr std::int64_t kStaysWarm = 1'048'576;
  if (bytes <= kStaysWarm) {
    return 1;
  }
  const std::int64_t of_all_ranks = bytes * ranks;
  return std::max<std::int64_t>(1, (4 * cache_bytes + of_all_ranks - 1) / of_all_ranks);
}

std::unique_ptr<Buffers> make_buffers(Group& group, const Question& question, std::int64_t count) {
  if (question.symmetric) {
    return std::make_unique<SymmetricBuffers>(group, question, count);
  }
  return std::make_unique<PlainBuffers>(group, question, count);
}

}  // namespace lockstep::bench
