// Data on several ranks: which samples a rank sees, ranks that run out early, and means over all.
//
//   lockstep::Sampler sampler(*data.size(), world, {.seed = 1});
//   auto loader = torch::data::make_data_loader(std::move(data), sampler, 64 / world.size());
//   for (int epoch = 0; epoch < 10; ++epoch) {
//     sampler.set_epoch(epoch);
//     for (auto& batch : *loader) …                               // the same number on all ranks,
//     or for (auto& batch : lockstep::joined(*loader, world)) …      // until the last rank has run
//     out
//   }
//
// Threads: everything here is used on the thread that made it.
#pragma once

#include "lockstep/group.h"
#include "lockstep/remainder.h"

#include <torch/torch.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

struct SamplerOptions {
  bool shuffle = true;  // off: the data set's own order in every epoch
  std::uint64_t seed = 0;
  Remainder remainder = Remainder::uneven;
};

// Where an epoch stands: the next sample to be taken. Says nothing of ranks or batches, so that a
// run can go on with other numbers of them.
struct SamplePosition {
  std::int64_t epoch = 0;
  std::int64_t samples = 0;  // of this epoch that all ranks together have taken
  friend bool operator==(const SamplePosition&, const SamplePosition&) = default;
};

// Gives each sample of an epoch to exactly one rank, in an order that hangs on (seed, epoch) only.
// A batch of the loader is cut out of the order rank by rank: with batches of 64 / P, batch i of
// all ranks holds the same samples as batch i of one process with batches of 64. Where the epoch's
// end does not divide by the ranks, `remainder` says what happens; by default some ranks get one
// sample less, and when fewer samples than ranks are left some get no batch: see joined().
//
// A Sampler is a handle: copies (the loader keeps one) share one position, so set_epoch() and
// restore() on the program's own reach the loader. All ranks use the same batch size.
class Sampler : public torch::data::samplers::Sampler<> {
 public:
  // Throws UsageError when there are fewer samples than ranks, unless they are to be padded.
  Sampler(std::int64_t samples, const Group& group, const SamplerOptions& options = {});

  // The next iteration of the loader begins this epoch; the one just restored, at its position.
  // Without this call each iteration takes the epoch after the last one's.
  void set_epoch(std::int64_t epoch);

  // What has been given to the loader. A loader with worker threads runs ahead of the program by up
  // to its max_jobs: there, ask for the position after the batches used since the iteration began.
  SamplePosition position() const;
  SamplePosition position_after(std::int64_t batches, std::int64_t batch_size) const;
  // The next iteration of the loader goes on there. Throws UsageError outside the data set.
  void restore(const SamplePosition& position);

  // torch::data's own interface. reset() begins an iteration; next() gives at most `batch_size`
  // indices, nothing when this rank has no more in this epoch.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  // The position, with what it hangs on: load() throws UsageError when the data set's size, the
  // seed or shuffle differ.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Whether any rank says yes. Collective.
bool any_rank(Group& group, bool here);

// Iterates over the batches of all ranks together: see joined().
template <class Batches>
class Joined {
 public:
  using Batch = std::remove_cvref_t<decltype(*std::declval<Batches&>().begin())>;

  class Iterator {
   public:
    Iterator(Batches& batches, Group& group)
        : next_(batches.begin()), end_(batches.end()), group_(&group) {
      take();
    }
    const std::optional<Batch>& operator*() const { return current_; }
    Iterator& operator++() {
      if (current_) {
        ++next_;
      }
      take();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !any_; }

   private:
    void take() {
      current_.reset();
      if (next_ != end_) {
        current_ = *next_;
      }
      any_ = any_rank(*group_, current_.has_value());
    }

    decltype(std::declval<Batches&>().begin()) next_;
    decltype(std::declval<Batches&>().end()) end_;
    Group* group_;
    std::optional<Batch> current_;
    bool any_ = false;
  };

  Joined(Batches& batches, Group& group) : batches_(&batches), group_(&group) {}
  Iterator begin() const { return {*batches_, *group_}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  Batches* batches_;
  Group* group_;
};

// A loader whose loop ends on all ranks together, when the last of them has run out. It yields
// std::optional<Batch>: nothing where this rank has run out and others have not. Such a rank takes
// part in the step with a weight of 0, so that each sample counts once (a mean over ranks would
// count the samples of the others less):
//
//   for (const auto& batch : lockstep::joined(*loader, world)) {
//     const std::int64_t samples = batch ? batch->data.size(0) : 0;
//     for (const auto& micro : parallel.weighted_micro_steps({samples})) {
//       if (batch) summed_loss(model, *batch).backward();
//     }
//     optimizer.step();
//   }
//
// Collective at each batch. Works on anything with begin() and end(); both must outlive the loop.
template <class Batches>
Joined<Batches> joined(Batches& batches, Group& group) {
  return {batches, group};
}

// A mean over everything that all ranks add, each value once, however unevenly they lie on ranks.
class Average {
 public:
  // `group` must outlive it; `name` is shown in errors.
  explicit Average(Group& group, std::string name = "average");

  // Adds `count` values by their sum. Throws UsageError for a negative count.
  Average& add(double sum, std::int64_t count);
  // Adds each element.
  Average& add(const torch::Tensor& values);

  // The mean over all ranks' values since the last result, the same bits on every rank; then starts
  // anew. Collective. Throws UsageError on every rank when none has added a value.
  double result();

 private:
  Group& group_;
  std::string name_;
  double sum_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace lockstep
