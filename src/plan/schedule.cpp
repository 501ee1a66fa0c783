#include "plan/schedule.h"

#include "base/invariant.h"
#include "plan/formulas.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::plan {
namespace {

constexpr std::int64_t kDecisionBytes = 256;
constexpr PerElement kSums{4, 4};

struct Groups {
  Network world;
  Network shard;    // hybrid: the ranks that share a replica; else the world
  Network replica;  // hybrid: the ranks that hold the same shard
};

Groups groups_of(Stage stage, const Dials& dials, const Hardware& hardware) {
  Groups groups;
  groups.world = world_of(dials, hardware);
  groups.shard = groups.world;
  groups.replica = groups.world;
  if (stage == Stage::hybrid) {
    const int size = dials.shard_size;
    groups.shard.ranks = size;
    groups.shard.ranks_per_host = std::min(size, dials.ranks_per_host);
    groups.replica.ranks = dials.ranks / size;
    groups.replica.ranks_per_host = std::max(1, dials.ranks_per_host / size);
    // All shards of a host cross its link at once.
    groups.replica.between.bytes_per_s /= std::min(size, dials.ranks_per_host);
  }
  return groups;
}

Lane lane_of(const Network& network) { return network.hosts() > 1 ? Lane::between : Lane::inside; }

Collective reduction_of(Stage stage) {
  return is_sharded(stage) ? Collective::reduce_scatter : Collective::all_reduce;
}

double seconds_of(Collective collective, const Payload& payload, const Network& network,
                  std::optional<Algorithm> algorithm) {
  const auto cost = cost_of(collective, algorithm.value_or(quickest(collective, payload, network)),
                            payload, network);
  LOCKSTEP_INVARIANT(cost.has_value(), ==, true);
  return cost->seconds;
}

// What all stages have in common: computation in a chain, and communication beside it.
class Builder {
 public:
  explicit Builder(const Job& job)
      : job_(job),
        dials_(job.dials),
        outline_(job.outline),
        recipe_(recipe_of(job.stage, job.dials)),
        groups_(groups_of(job.stage, job.dials, job.hardware)) {}

  std::vector<Task> take() { return std::move(tasks_); }

 protected:
  using Tasks = std::vector<std::size_t>;

  std::size_t add(Task task) {
    tasks_.push_back(std::move(task));
    return tasks_.size() - 1;
  }

  // Follows the computation before it, and `after`.
  std::size_t compute(TaskKind kind, double seconds, std::int64_t part, std::int64_t micro,
                      Tasks after = {}) {
    after.insert(after.end(), last_.begin(), last_.end());
    last_ = {add({kind, Lane::compute, seconds, part, micro, std::move(after)})};
    return last_.front();
  }

  std::size_t communicate(TaskKind kind, const Network& network, double seconds, std::int64_t part,
                          std::int64_t micro, Tasks after) {
    return add({kind, lane_of(network), seconds, part, micro, std::move(after)});
  }

  double forward_seconds(const Amount& part, std::int64_t blocks) const {
    const auto all =
        static_cast<double>((outline_.trained.elements() + outline_.frozen.elements()));
    const auto trained = static_cast<double>(outline_.trained.elements());
    const double elements = static_cast<double>(part.elements()) * all / trained;
    return operation_seconds(2 * elements * job_.operations.per_element_token +
                             static_cast<double>(blocks) * job_.operations.attention_of_block);
  }

  // The gradients of what flows, which cost a forward, and of the parameters that are trained.
  double backward_seconds(const Amount& part, std::int64_t blocks, bool recompute) const {
    const double forward = forward_seconds(part, blocks);
    const double weights = operation_seconds(
        2 * static_cast<double>(part.elements()) * job_.operations.per_element_token +
        static_cast<double>(blocks) * job_.operations.attention_of_block);
    return forward + weights + (recompute ? forward : 0);
  }

  Payload gradient_payload(const Amount& amount) const {
    return {recipe_.leaf.bytes(amount), kSums.bytes(amount)};
  }

  // Small, so it is latency that counts.
  void decide_and_update(Tasks after) {
    if (job_.stage != Stage::single && dials_.ranks > 1) {
      after.insert(after.end(), last_.begin(), last_.end());
      const Payload payload{kDecisionBytes, kDecisionBytes};
      const double seconds =
          seconds_of(Collective::all_reduce, payload, groups_.world, std::nullopt);
      after = {communicate(TaskKind::decide, groups_.world, seconds, 0, 0, std::move(after))};
    }
    const Amount own = shard_of(outline_.trained, shards_of(job_.stage, dials_).optimizer);
    const std::int64_t touched = 2 * recipe_.optimizer.bytes(own) + recipe_.gradient.bytes(own) +
                                 recipe_.parameter.bytes(own);
    compute(TaskKind::update, static_cast<double>(touched) / job_.hardware.memory_bytes_per_s, 0, 0,
            std::move(after));
  }

  const Job& job_;
  const Dials& dials_;
  const Outline& outline_;
  const Recipe recipe_;
  const Groups groups_;
  Tasks last_;  // the last computation, once there is one

 private:
  double operation_seconds(double operations) const {
    const Hardware& hardware = job_.hardware;
    const double peak =
        dials_.precision == Precision::bf16 ? hardware.bf16_flops : hardware.f32_flops;
    return operations / (peak * hardware.reached);
  }

  std::vector<Task> tasks_;
};

// single, ddp, zero1, zero2.
class BucketStep : public Builder {
 public:
  using Builder::Builder;

  std::vector<Task> build() {
    for (std::int64_t micro = 0; micro < dials_.accumulate; ++micro) {
      run_micro_batch(micro);
      if (job_.stage != Stage::single &&
          (micro + 1 == dials_.accumulate || reduces_every_micro_batch(job_.stage, dials_))) {
        exchange(micro);
      }
    }
    decide_and_update(exchanged_);
    if (is_sharded(job_.stage) && (!dials_.share_parameters || dials_.hosts() > 1)) {
      spread();
    }
    return take();
  }

 private:
  void run_micro_batch(std::int64_t micro) {
    const auto units = static_cast<std::int64_t>(outline_.units.size());
    for (std::int64_t unit = 0; unit < units; ++unit) {
      compute(TaskKind::forward, forward_seconds(unit_at(unit), blocks_in(unit)), unit + 1, micro);
    }
    compute(TaskKind::forward, forward_seconds(outline_.root, 0), 0, micro);
    backward_ = {compute(TaskKind::backward, backward_seconds(outline_.root, 0, false), 0, micro)};
    for (std::int64_t unit = units; unit-- > 0;) {
      backward_.push_back(compute(
          TaskKind::backward, backward_seconds(unit_at(unit), blocks_in(unit), dials_.recompute),
          unit + 1, micro));
    }
  }

  void exchange(std::int64_t micro) {
    const TaskKind kind = is_sharded(job_.stage) ? TaskKind::reduce : TaskKind::all_reduce;
    std::int64_t number = 0;
    for (const Bucket& bucket : outline_.buckets) {
      const double seconds = static_cast<double>(bucket.count) *
                             seconds_of(reduction_of(job_.stage), gradient_payload(bucket.amount),
                                        groups_.world, job_.algorithm);
      exchanged_.push_back(
          communicate(kind, groups_.world, seconds, number++, micro, {ready(bucket)}));
      if (!dials_.overlap) {
        last_.push_back(exchanged_.back());
      }
    }
  }

  // The computation that fills the bucket.
  std::size_t ready(const Bucket& bucket) const {
    if (!dials_.overlap) {
      return backward_.back();
    }
    const std::int64_t unit =
        (bucket.after + dials_.unit_blocks - 1) / std::max<std::int64_t>(1, dials_.unit_blocks);
    return backward_[std::min(static_cast<std::size_t>(unit), backward_.size() - 1)];
  }

  void spread() {
    std::int64_t number = 0;
    for (const Bucket& bucket : outline_.buckets) {
      const std::int64_t bytes = recipe_.parameter.bytes(bucket.amount);
      const double seconds =
          static_cast<double>(bucket.count) *
          seconds_of(Collective::all_gather, {bytes, bytes}, groups_.world, std::nullopt);
      communicate(TaskKind::spread, groups_.world, seconds, number++, 0, last_);
    }
  }

  const Amount& unit_at(std::int64_t unit) const {
    return outline_.units[static_cast<std::size_t>(unit)];
  }
  std::int64_t blocks_in(std::int64_t unit) const {
    return std::min(dials_.unit_blocks, outline_.blocks - unit * dials_.unit_blocks);
  }

  Tasks backward_;   // by how far backward has come
  Tasks exchanged_;  // of the step so far
};

// zero3, hybrid. Part 0 is what lies outside of all units: it is needed by the first computation
// and by the last of forward, and again by backward.
class UnitStep : public Builder {
 public:
  using Builder::Builder;

  std::vector<Task> build() {
    for (std::int64_t micro = 0; micro < dials_.accumulate; ++micro) {
      run_pass(TaskKind::forward, micro);
      run_pass(TaskKind::backward, micro);
    }
    decide_and_update(reduced_);
    return take();
  }

 private:
  // What is computed one after the other in a pass: units and, as part 0, the head.
  std::vector<std::int64_t> order_of(TaskKind pass) const {
    std::vector<std::int64_t> parts;
    for (std::int64_t unit = 1; unit <= static_cast<std::int64_t>(outline_.units.size()); ++unit) {
      parts.push_back(unit);
    }
    parts.push_back(0);
    if (pass == TaskKind::backward) {
      std::ranges::reverse(parts);
    }
    return parts;
  }

  void run_pass(TaskKind pass, std::int64_t micro) {
    const std::vector<std::int64_t> order = order_of(pass);
    Tasks root;
    if (moves(pass, micro)) {
      root = {gather(0, pass, micro, last_)};
    }
    std::vector<Tasks> ended{last_};  // before the i-th computation of the pass
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t part = order[i];
      Tasks needs = i == 0 || part == 0 ? root : Tasks{};
      if (part != 0 && moves(pass, micro)) {
        const auto ahead = static_cast<std::size_t>(dials_.overlap ? dials_.prefetch : 0);
        needs.push_back(gather(part, pass, micro, ended[i > ahead ? i - ahead : 0]));
      }
      if (!dials_.overlap && !reduced_.empty()) {
        needs.push_back(reduced_.back());
      }
      const double seconds =
          pass == TaskKind::forward
              ? forward_seconds(amount_of(part), blocks_in(part))
              : backward_seconds(amount_of(part), blocks_in(part), dials_.recompute && part != 0);
      const std::size_t ran = compute(pass, seconds, part, micro, std::move(needs));
      ended.push_back({ran});
      if (pass == TaskKind::backward && part != 0) {
        reduce(part, micro, ran);
      }
    }
    if (pass == TaskKind::backward) {
      reduce(0, micro, last_.front());
    }
  }

  bool moves(TaskKind pass, std::int64_t micro) const {
    if (!gathers(job_.stage, dials_)) {
      return false;
    }
    const bool first = pass == TaskKind::forward && micro == 0;
    switch (dials_.reshard) {
      case Reshard::always:
        return true;
      case Reshard::never:
        return first;
      case Reshard::host:
        break;
    }
    return first || dials_.host_memory == HostMemory::separate || groups_.shard.hosts() == 1;
  }

  std::size_t gather(std::int64_t part, TaskKind pass, std::int64_t micro, Tasks after) {
    Network network = groups_.shard;
    if (dials_.reshard == Reshard::host && !(pass == TaskKind::forward && micro == 0)) {
      network.ranks = std::min(network.ranks, network.ranks_per_host);
    }
    const std::int64_t bytes = recipe_.parameter.bytes(amount_of(part));
    const double seconds =
        seconds_of(Collective::all_gather, {bytes, bytes}, network, std::nullopt);
    return communicate(TaskKind::gather, network, seconds, part, micro, std::move(after));
  }

  void reduce(std::int64_t part, std::int64_t micro, std::size_t after) {
    if (!reduces_every_micro_batch(job_.stage, dials_) && micro + 1 < dials_.accumulate) {
      return;
    }
    const Amount& amount = amount_of(part);
    const double seconds = seconds_of(Collective::reduce_scatter, gradient_payload(amount),
                                      groups_.shard, job_.algorithm);
    std::size_t ended = communicate(TaskKind::reduce, groups_.shard, seconds, part, micro, {after});
    if (job_.stage == Stage::hybrid && groups_.replica.ranks > 1 &&
        micro + 1 == dials_.accumulate) {
      const std::int64_t bytes = kSums.bytes(shard_of(amount, dials_.shard_size));
      const double added =
          seconds_of(Collective::all_reduce, {bytes, bytes}, groups_.replica, std::nullopt);
      ended = communicate(TaskKind::all_reduce, groups_.replica, added, part, micro, {ended});
    }
    reduced_.push_back(ended);
  }

  const Amount& amount_of(std::int64_t part) const {
    return part == 0 ? outline_.root : outline_.units[static_cast<std::size_t>(part - 1)];
  }
  std::int64_t blocks_in(std::int64_t part) const {
    return part == 0
               ? 0
               : std::min(dials_.unit_blocks, outline_.blocks - (part - 1) * dials_.unit_blocks);
  }

  Tasks reduced_;
};

}  // namespace

Network world_of(const Dials& dials, const Hardware& hardware) {
  return {dials.ranks, std::min(dials.ranks, dials.ranks_per_host), hardware.inside,
          hardware.between};
}

bool is_possible(const Job& job) {
  if (!job.algorithm || job.stage == Stage::single) {
    return true;
  }
  const Groups groups = groups_of(job.stage, job.dials, job.hardware);
  return cost_of(reduction_of(job.stage), *job.algorithm, {64, 64}, groups.shard).has_value();
}

std::vector<Task> schedule_of(const Job& job) {
  const bool by_unit = job.stage == Stage::zero3 || job.stage == Stage::hybrid;
  return by_unit ? UnitStep(job).build() : BucketStep(job).build();
}

}  // namespace lockstep::plan
