#include "lockstep/group.h"

#include "base/range.h"
#include "comm/arguments.h"
#include "comm/direct.h"
#include "comm/formation.h"
#include "comm/from_environment.h"
#include "comm/issue_scheduled.h"
#include "comm/message.h"
#include "comm/small.h"
#include "comm/staged.h"

#include <array>
#include <utility>

namespace lockstep {
namespace {

using comm::DirectPart;
using comm::Fingerprint;
using comm::Kind;
using comm::Reduction;

// Issues Small where `bytes` fit a slot, else Staged.
template <class Small, class Staged, class... Arguments>
Work issue_plain(comm::Communicator& group, const Fingerprint& fingerprint, std::int64_t bytes,
                 const Arguments&... arguments) {
  if (bytes <= comm::Control::kSlotBytes) {
    return group.issue(std::make_shared<Small>(fingerprint, group.control(), arguments...));
  }
  return group.issue(std::make_shared<Staged>(fingerprint, group.control(), arguments...));
}

template <class Options>
Fingerprint fingerprint_in(const comm::Communicator& group, Kind kind, const Options& options) {
  return comm::fingerprint_of(
      kind, options.name, comm::chosen_algorithm(kind, options.algorithm, group.shares_memory()));
}

bool is_direct(const Fingerprint& fingerprint) {
  return fingerprint.algorithm == Algorithm::direct;
}

}  // namespace

Work::Work(std::shared_ptr<comm::Operation> operation) : operation_(std::move(operation)) {}
Work::Work(Work&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    drop();
    operation_ = std::exchange(other.operation_, nullptr);
  }
  return *this;
}
Work::~Work() { drop(); }

void Work::wait() {
  if (operation_ != nullptr) {
    operation_->communicator_->wait(*operation_);
  }
}

bool Work::done() { return operation_ == nullptr || operation_->communicator_->done(*operation_); }

void Work::drop() noexcept {
  if (operation_ != nullptr) {
    operation_->communicator_->drop(*operation_);
    operation_ = nullptr;
  }
}

Group Group::from_environment(GroupOptions options) {
  return Group(comm::form_world(comm::world_from_environment(std::move(options))));
}

Group Group::alone(GroupOptions options) {
  comm::Formation formation;
  formation.meeting = comm::meeting_of_one();
  formation.options = std::move(options);
  return Group(comm::form_group(formation));
}

std::vector<Group> Group::of_threads(int size, GroupOptions options) {
  if (size < 1) {
    throw UsageError("Group::of_threads: expected at least 1 rank, got " + std::to_string(size));
  }
  std::vector<Group> groups;
  for (auto& communicator : comm::form_group_of_threads(size, options)) {
    groups.emplace_back(std::move(communicator));
  }
  return groups;
}

Group::Group(std::shared_ptr<comm::Communicator> communicator)
    : communicator_(std::move(communicator)) {}
Group::Group(Group&& other) noexcept : communicator_(std::exchange(other.communicator_, nullptr)) {}
Group& Group::operator=(Group&& other) noexcept {
  if (this != &other) {
    if (communicator_ != nullptr) {
      communicator_->leave();
    }
    communicator_ = std::exchange(other.communicator_, nullptr);
  }
  return *this;
}
Group::~Group() {
  if (communicator_ != nullptr) {
    communicator_->leave();
  }
}

int Group::rank() const { return communicator_->rank(); }
int Group::size() const { return communicator_->size(); }
const std::string& Group::name() const { return communicator_->options().name; }
std::chrono::milliseconds Group::deadline() const { return communicator_->options().deadline; }
Traffic Group::traffic() const { return communicator_->traffic(); }

SymmetricMemory Group::allocate_symmetric(std::int64_t bytes, std::string_view name) {
  return SymmetricMemory(comm::allocate_symmetric(*communicator_, bytes, name));
}

HostMemory Group::allocate_host(std::int64_t bytes, std::string_view name) {
  return HostMemory(comm::allocate_host(*communicator_, bytes, name));
}

Work Group::all_reduce(Span data, const ReduceOptions& options) {
  comm::require_plain(Kind::all_reduce, data);
  comm::require_no_callback(Kind::all_reduce, options);
  const Reduction reduction = comm::reduction_of(options, data.dtype, size());
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::all_reduce, options);
  comm::add_reduction(fingerprint, options);
  fingerprint.add(comm::part_of(data, options.round_to));
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint,
                                 {comm::all_reduced(data, options.round_to)}, {reduction, {}});
  }
  return issue_plain<comm::SmallAllReduce, comm::StagedAllReduce>(*communicator_, fingerprint,
                                                                  data.bytes(), data, reduction);
}

Work Group::all_reduce(const SymmetricSpan& data, const ReduceOptions& options) {
  const std::array<ReducePart, 1> parts{ReducePart{data, options.round_to}};
  ReduceOptions others = options;
  others.round_to.reset();
  return all_reduce(parts, others);
}

Work Group::all_reduce(std::span<const ReducePart> parts, const ReduceOptions& options) {
  comm::require_parts(Kind::all_reduce, parts.size(), options);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::all_reduce, options);
  comm::add_reduction(fingerprint, options);
  std::vector<DirectPart> direct;
  std::vector<comm::ScheduledPart> scheduled;
  Reduction reduction;
  for (const ReducePart& part : parts) {
    comm::require_symmetric(Kind::all_reduce, part.data, *communicator_);
    comm::require_rounding(part.round_to, part.data.dtype);
    reduction = comm::reduction_of(options, part.data.dtype, size());
    fingerprint.add(comm::part_of(part.data, part.round_to));
    direct.push_back({part.data, part.round_to});
    scheduled.push_back(comm::all_reduced(part.data.local(), part.round_to));
  }
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint, std::move(scheduled),
                                 {reduction, options.on_reduced});
  }
  return communicator_->issue(std::make_shared<comm::DirectAllReduce>(
      fingerprint, rank(), size(), std::move(direct), reduction, options.on_reduced));
}

Work Group::reduce_scatter(Span input, Span output, const ReduceOptions& options) {
  comm::require_plain(Kind::reduce_scatter, input);
  comm::require_plain(Kind::reduce_scatter, output);
  comm::require_no_callback(Kind::reduce_scatter, options);
  comm::require_block(Kind::reduce_scatter, input, output, *communicator_);
  const Reduction reduction = comm::reduction_of(options, input.dtype, size());
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::reduce_scatter, options);
  comm::add_reduction(fingerprint, options);
  fingerprint.add(comm::part_of(input, options.round_to));
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint,
                                 {comm::reduce_scattered(input, output, options.round_to)},
                                 {reduction, {}});
  }
  return issue_plain<comm::SmallReduceScatter, comm::StagedReduceScatter>(
      *communicator_, fingerprint, input.bytes(), input, output, reduction);
}

Work Group::reduce_scatter(const SymmetricSpan& input, Span output, const ReduceOptions& options) {
  comm::require_symmetric(Kind::reduce_scatter, input, *communicator_);
  comm::require_plain(Kind::reduce_scatter, output);
  comm::require_block(Kind::reduce_scatter, input.local(), output, *communicator_);
  const std::array<ScatterPart, 1> parts{ScatterPart{input, output, options.round_to}};
  ReduceOptions others = options;
  others.round_to.reset();
  return reduce_scatter(parts, others);
}

Work Group::reduce_scatter(std::span<const ScatterPart> parts, const ReduceOptions& options) {
  comm::require_parts(Kind::reduce_scatter, parts.size(), options);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::reduce_scatter, options);
  comm::add_reduction(fingerprint, options);
  std::vector<comm::DirectReduceScatter::Part> direct;
  std::vector<comm::ScheduledPart> scheduled;
  Reduction reduction;
  for (const ScatterPart& part : parts) {
    comm::require_symmetric(Kind::reduce_scatter, part.input, *communicator_);
    comm::require_scattered(part, options, *communicator_);
    reduction = comm::reduction_of(options, part.input.dtype, size());
    fingerprint.add(comm::part_of(part.input, part.round_to));
    fingerprint.part[fingerprint.parts - 1].widened = part.output.dtype != part.input.dtype;
    direct.push_back({{part.input, part.round_to}, part.output});
    scheduled.push_back(comm::reduce_scattered(part.input.local(), part.output, part.round_to));
  }
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint, std::move(scheduled),
                                 {reduction, options.on_reduced});
  }
  return communicator_->issue(std::make_shared<comm::DirectReduceScatter>(
      fingerprint, rank(), size(), std::move(direct), reduction, options.on_reduced));
}

Work Group::all_gather(Span input, Span output, const CollectiveOptions& options) {
  comm::require_plain(Kind::all_gather, input);
  comm::require_plain(Kind::all_gather, output);
  comm::require_block(Kind::all_gather, output, input, *communicator_);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::all_gather, options);
  fingerprint.add(comm::part_of(output));
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint,
                                 {comm::gathered(input, output, rank(), size())});
  }
  return issue_plain<comm::SmallAllGather, comm::StagedAllGather>(
      *communicator_, fingerprint, block_of(output.count, size(), 0).size() * size_of(output.dtype),
      input, output);
}

Work Group::all_gather(const SymmetricSpan& in_place, const CollectiveOptions& options) {
  comm::require_symmetric(Kind::all_gather, in_place, *communicator_);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::all_gather, options);
  fingerprint.add(comm::part_of(in_place));
  if (!is_direct(fingerprint)) {
    const Range own = block_of(in_place.count, size(), rank());
    return comm::issue_scheduled(*communicator_, fingerprint,
                                 {comm::gathered(in_place.subspan(own.begin, own.end).local(),
                                                 in_place.local(), rank(), size())});
  }
  return communicator_->issue(std::make_shared<comm::DirectAllGather>(fingerprint, rank(), size(),
                                                                      DirectPart{in_place, {}}));
}

Work Group::broadcast(Span data, int root, const CollectiveOptions& options) {
  comm::require_plain(Kind::broadcast, data);
  comm::require_root(Kind::broadcast, root, size());
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::broadcast, options);
  fingerprint.root = root;
  fingerprint.add(comm::part_of(data));
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint, {comm::in_place(data)});
  }
  return issue_plain<comm::SmallBroadcast, comm::StagedBroadcast>(*communicator_, fingerprint,
                                                                  data.bytes(), data, root);
}

Work Group::broadcast(const SymmetricSpan& data, int root, const CollectiveOptions& options) {
  comm::require_symmetric(Kind::broadcast, data, *communicator_);
  comm::require_root(Kind::broadcast, root, size());
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::broadcast, options);
  fingerprint.root = root;
  fingerprint.add(comm::part_of(data));
  if (!is_direct(fingerprint)) {
    return comm::issue_scheduled(*communicator_, fingerprint, {comm::in_place(data.local())});
  }
  return communicator_->issue(std::make_shared<comm::DirectBroadcast>(fingerprint, rank(), size(),
                                                                      DirectPart{data, {}}, root));
}

Work Group::reduce(Span data, int root, const ReduceOptions& options) {
  comm::require_plain(Kind::reduce, data);
  comm::require_no_callback(Kind::reduce, options);
  comm::require_root(Kind::reduce, root, size());
  const Reduction reduction = comm::reduction_of(options, data.dtype, size());
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::reduce, options);
  fingerprint.root = root;
  comm::add_reduction(fingerprint, options);
  fingerprint.add(comm::part_of(data, options.round_to));
  return comm::issue_scheduled(*communicator_, fingerprint,
                               {comm::reduced(data, options.round_to, rank() == root)},
                               {reduction, {}});
}

Work Group::gather(Span block, Span whole, int root, const CollectiveOptions& options) {
  comm::require_root(Kind::gather, root, size());
  comm::require_whole(Kind::gather, whole, block, root, *communicator_);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::gather, options);
  fingerprint.root = root;
  fingerprint.add(comm::part_of(whole));
  return comm::issue_scheduled(*communicator_, fingerprint,
                               {rank() == root ? comm::gathered(block, whole, rank(), size())
                                               : comm::own_block(block, whole.count)});
}

Work Group::scatter(Span whole, Span block, int root, const CollectiveOptions& options) {
  comm::require_root(Kind::scatter, root, size());
  comm::require_whole(Kind::scatter, whole, block, root, *communicator_);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::scatter, options);
  fingerprint.root = root;
  fingerprint.add(comm::part_of(whole));
  return comm::issue_scheduled(*communicator_, fingerprint,
                               {rank() == root ? comm::scattered(whole, block, rank(), size())
                                               : comm::own_block(block, whole.count)});
}

Work Group::all_to_all(Span input, Span output, const CollectiveOptions& options) {
  comm::require_exchange(input, output, *communicator_);
  Fingerprint fingerprint = fingerprint_in(*communicator_, Kind::all_to_all, options);
  fingerprint.add(comm::part_of(input));
  return comm::issue_scheduled(*communicator_, fingerprint,
                               {comm::exchanged(input, output, rank(), size())});
}

Work Group::send(Span data, int peer, std::string_view name) {
  return comm::issue_message(*communicator_, Kind::send, data, peer, name);
}

Work Group::recv(Span data, int peer, std::string_view name) {
  return comm::issue_message(*communicator_, Kind::recv, data, peer, name);
}

void Group::barrier(const CollectiveOptions& options) {
  communicator_
      ->issue(std::make_shared<comm::Meet>(comm::fingerprint_of(Kind::barrier, options.name)))
      .wait();
}

std::optional<Group> Group::split(int color, int key) {
  auto communicator = comm::split(*communicator_, color, key);
  if (communicator == nullptr) {
    return std::nullopt;
  }
  return Group(std::move(communicator));
}

Group Group::duplicate() { return std::move(*split(0, rank())); }

void Group::progress() { communicator_->progress(); }

void Group::record_flight(const std::string& folder) {
  if (folder.empty()) {
    throw UsageError("record_flight: expected a folder, got an empty name");
  }
  communicator_->journal()->record_to(folder);
}

std::string Group::flight_folder() const { return communicator_->journal()->folder(); }

void Group::mark_step(std::int64_t step) { communicator_->journal()->mark_step(step); }

}  // namespace lockstep
