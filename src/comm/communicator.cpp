#include "comm/communicator.h"

#include "base/invariant.h"
#include "comm/network_transport.h"
#include "comm/schedule.h"
#include "comm/shared_transport.h"
#include "comm/waiting.h"
#include "lockstep/error.h"

#include <algorithm>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace lockstep::comm {
namespace {

constexpr std::int64_t kSpinNs = 50'000;
constexpr std::int64_t kLookEveryNs = 50'000'000;

}  // namespace

Communicator::Communicator(const Membership& membership, const GroupOptions& options)
    : control_(membership.segment, membership.rank, membership.size),
      presence_(presence_of(membership)),
      journal_(journal_of(membership)),
      meeting_(membership.meeting),
      port_(membership.port),
      network_(membership.network),
      mirror_(network_ == nullptr
                  ? nullptr
                  : std::make_unique<MirroredControl>(network_->port(), network_->members(),
                                                      network_->control_channel(), control_)),
      transport_(transport_of(membership, control_, Control::Lane::collective)),
      message_transport_(transport_of(membership, control_, Control::Lane::pair)),
      options_(options),
      ranks_per_host_(uniform_hosts(options.hosts, membership.size)),
      agreement_(control_, options.name),
      watch_({.control = control_,
              .presence = presence_.get(),
              .journal = *journal_,
              .world_ranks = membership.world_ranks,
              .deadline = options.deadline,
              .group_name = options.name}),
      process_(::getpid()) {}

std::shared_ptr<const Presence> Communicator::presence_of(const Membership& membership) {
  return membership.meeting->members_are_processes()
             ? std::make_shared<const Presence>(membership.segment, membership.rank)
             : nullptr;
}

std::shared_ptr<Journal> Communicator::journal_of(const Membership& membership) const {
  if (membership.journal != nullptr) {
    return membership.journal;
  }
  return std::make_shared<Journal>(
      Journal::World{.segment = membership.segment,
                     .table = WorldTable(control_.table(), membership.size),
                     .presence = presence_,
                     .id = control_.group_id(),
                     .rank = membership.rank});
}

std::unique_ptr<Transport> Communicator::transport_of(const Membership& membership,
                                                      Control& control, Control::Lane lane) {
  if (membership.network == nullptr) {
    return std::make_unique<SharedTransport>(control, lane);
  }
  const Network& network = *membership.network;
  return std::make_unique<NetworkTransport>(
      network.port(), network.members(),
      lane == Control::Lane::pair ? network.pair_channel() : network.collective_channel());
}

void Communicator::tell_failure() noexcept {
  constexpr std::chrono::milliseconds kPatience{200};
  if (mirror_ == nullptr) {
    return;
  }
  transport_->give_up();
  message_transport_->give_up();
  network_->port()->abandon();
  try {
    mirror_->flush(kPatience);
  } catch (const std::exception&) {
    // The first cause is what counts; peers that can't be told have their deadlines.
  }
}

void Communicator::require_healthy() {
  if (state_ == State::poisoned) {
    const std::string text = control_.failure().text;
    throw GroupPoisoned("group '" + options_.name +
                        "' failed earlier: " + text.substr(0, text.find('\n')));
  }
  if (state_ == State::left) {
    throw GroupPoisoned("group '" + options_.name + "': its handle was destroyed before this call");
  }
  if (control_.failed()) {
    become_poisoned(control_.failure().text);
    raise(control_.failure());
  }
}

void Communicator::become_poisoned(const std::string& text) {
  state_ = State::poisoned;
  journal_->fail(text);
  tell_failure();
}

void Communicator::fail(const Failure& failure) {
  control_.fail(failure);
  become_poisoned(control_.failure().text);
  raise(control_.failure());
}

void Communicator::enter() {
  if (state_ == State::advancing) {
    throw UsageError("group '" + options_.name +
                     "': called from on_reduced; issue and wait outside of it");
  }
  require_healthy();
  control_.beat();
}

template <class Function>
auto Communicator::guarded(Function function) {
  try {
    return function();
  } catch (const GroupError& error) {
    fail(failure_of(error, ""));
  } catch (const std::exception& error) {
    control_.fail(
        {Failure::Kind::poisoned, -1,
         "group '" + options_.name + "', rank " + std::to_string(rank()) + ": " + error.what()});
    become_poisoned(control_.failure().text);
    throw;
  }
}

Work Communicator::issue(const std::shared_ptr<Operation>& operation) {
  enter();
  guarded([&] { make_room(); });
  LOCKSTEP_INVARIANT(operation->state_ == Operation::State::created, ==, true);
  operation->state_ = Operation::State::running;
  operation->communicator_ = shared_from_this();
  operation->first_step_ = planned_steps_;
  operation->fingerprint_.sequence = ++issued_;
  operation->fingerprint_.entered_ns = now_ns();
  planned_steps_ += static_cast<std::uint64_t>(operation->steps());
  traffic_.collectives += moves_payload(operation->fingerprint_.kind) ? 1 : 0;
  ++unawaited_;
  unexecuted_.push_back(operation);
  note_entry(*operation, control_.group_id());
  control_.post(operation->fingerprint_);
  Work work(operation);
  guarded([&] { advance(); });
  return work;
}

void Communicator::note_entry(Operation& operation, std::uint64_t group) {
  FlightRecord& record = operation.record_;
  record = record_of(operation.fingerprint_);
  record.group = group;
  record.group_rank = rank();
  record.group_size = size();
  set_text(record.group_name, options_.name);
  record.steps = static_cast<std::uint32_t>(operation.steps());
  journal_->enter(record);
}

Work Communicator::issue_message(const std::shared_ptr<Operation>& message) {
  enter();
  LOCKSTEP_INVARIANT(message->state_ == Operation::State::created, ==, true);
  message->state_ = Operation::State::running;
  message->communicator_ = shared_from_this();
  message->fingerprint_.sequence = ++messages_issued_;
  message->fingerprint_.entered_ns = now_ns();
  ++unawaited_;
  messages_.push_back(message);
  // Each rank counts its own messages: they are no calls that ranks are compared by.
  note_entry(*message, control_.group_id() + 1 + static_cast<std::uint64_t>(rank()));
  Work work(message);
  guarded([&] { advance(); });
  return work;
}

// Bounds the fingerprints in flight (Control::kWindow).
void Communicator::make_room() {
  if (issued_ < agreement_.verified() + Control::kWindow) {
    return;
  }
  const Needs needs{agreement_.verified() + 1, 0, now_ns(), &unexecuted_.front()->record_, -1};
  wait_until(
      [&] {
        advance();
        return issued_ < agreement_.verified() + Control::kWindow;
      },
      needs);
}

void Communicator::wait(Operation& operation) {
  if (operation.state_ == Operation::State::awaited) {
    return;
  }
  enter();
  const Needs needs = needs_of(operation);
  guarded([&] {
    wait_until(
        [&] {
          advance();
          return finished(operation);
        },
        needs);
  });
  conclude(operation);
}

bool Communicator::done(Operation& operation) {
  if (operation.state_ == Operation::State::awaited) {
    return true;
  }
  enter();
  return guarded([&] {
    advance();
    if (finished(operation)) {
      conclude(operation);
      return true;
    }
    const auto failure = look_around(needs_of(operation));
    if (!failure) {
      return false;
    }
    advance();
    if (!finished(operation)) {
      fail(*failure);
    }
    conclude(operation);
    return true;
  });
}

void Communicator::conclude(Operation& operation) {
  LOCKSTEP_INVARIANT(operation.state_ == Operation::State::executed, ==, true);
  operation.state_ = Operation::State::awaited;
  --unawaited_;
  const std::int64_t now = now_ns();
  journal_->leave(operation.record_, now);
  control_.beat(now);
}

void Communicator::drop(const Operation& operation) noexcept {
  if (operation.state_ == Operation::State::awaited || state_ == State::left ||
      state_ == State::poisoned || process_ != ::getpid()) {
    return;
  }
  control_.fail({Failure::Kind::poisoned, -1,
                 "group '" + options_.name + "': rank " + std::to_string(rank()) + " dropped " +
                     describe_briefly(operation.fingerprint_) +
                     " without waiting for it; keep the Work and call wait()"});
}

void Communicator::progress() {
  enter();
  guarded([&] { advance(); });
}

void Communicator::leave() noexcept {
  if (state_ == State::left || process_ != ::getpid()) {
    return;
  }
  if (unawaited_ > 0 && state_ != State::poisoned) {
    control_.fail(
        {Failure::Kind::poisoned, -1,
         "group '" + options_.name + "': rank " + std::to_string(rank()) +
             " destroyed its handle while an operation was in flight; wait for every Work first"});
  }
  state_ = State::left;
  unexecuted_.clear();
  messages_.clear();
  control_.leave();
  if (control_.failed()) {
    tell_failure();
  } else if (mirror_ != nullptr) {
    say_goodbye();
  }
}

void Communicator::say_goodbye() noexcept {
  constexpr std::chrono::milliseconds kPatience{1000};
  try {
    if (!mirror_->flush(kPatience)) {
      network_->port()->abandon();
    }
  } catch (const std::exception&) {
    network_->port()->abandon();
  }
}

void Communicator::require_alive(const std::vector<int>& ranks) {
  require_healthy();
  control_.beat();
  if (const auto failure = watch_.look_for_dead(ranks)) {
    fail(*failure);
  }
}

void Communicator::advance() {
  if (mirror_ != nullptr) {
    mirror_->exchange();
  }
  if (control_.failed()) {
    require_healthy();
  }
  state_ = State::advancing;
  try {
    while (!unexecuted_.empty() && run_steps(*unexecuted_.front())) {
      unexecuted_.front()->state_ = Operation::State::executed;
      journal_->note_finish(unexecuted_.front()->record_);
      unexecuted_.pop_front();
    }
    advance_messages();
  } catch (...) {
    if (state_ == State::advancing) {
      state_ = State::open;
    }
    throw;
  }
  state_ = State::open;
}

// In the order of issue; of those that receive on one line only the first that has not ended.
void Communicator::advance_messages() {
  std::vector<int> lines;
  for (auto next = messages_.begin(); next != messages_.end();) {
    Operation& message = **next;
    const bool receives = message.fingerprint_.kind == Kind::recv;
    const bool its_turn = !receives || std::ranges::find(lines, message.peer()) == lines.end();
    if (its_turn && run_message(message)) {
      next = messages_.erase(next);
      continue;
    }
    if (receives) {
      lines.push_back(message.peer());
    }
    ++next;
  }
}

bool Communicator::run_message(Operation& message) {
  if (message.record_.started_ns == 0) {
    journal_->note_start(message.record_);
  }
  if (!message.run(0, traffic_)) {
    return false;
  }
  message.state_ = Operation::State::executed;
  ++message.record_.steps_run;
  journal_->note_finish(message.record_);
  return true;
}

// Whether all steps of the operation have run here.
bool Communicator::run_steps(Operation& operation) {
  while (operation.next_step_ < operation.steps()) {
    if (!passes(operation.gate(operation.next_step_), operation)) {
      return false;
    }
    if (operation.next_step_ == 0) {
      journal_->note_start(operation.record_);
    }
    Traffic control_bytes;
    if (!operation.run(operation.next_step_,
                       moves_payload(operation.fingerprint_.kind) ? traffic_ : control_bytes)) {
      return false;
    }
    ++operation.next_step_;
    control_.publish_stepped(++stepped_);
    ++operation.record_.steps_run;
    journal_->note_steps(operation.record_);
  }
  return agreement_.entered(operation.fingerprint_.sequence);
}

bool Communicator::passes(Operation::Gate gate, const Operation& operation) {
  switch (gate) {
    case Operation::Gate::open:
      return true;
    case Operation::Gate::entered:
      return agreement_.entered(operation.fingerprint_.sequence);
    case Operation::Gate::stepped:
      return agreement_.entered(operation.fingerprint_.sequence) && agreement_.stepped(stepped_);
  }
  return false;
}

std::uint64_t Communicator::end_of(const Operation& operation) const {
  return operation.first_step_ + static_cast<std::uint64_t>(operation.steps());
}

bool Communicator::finished(const Operation& operation) {
  return operation.state_ == Operation::State::executed &&
         (operation.ends() == Operation::Ends::alone || agreement_.stepped(end_of(operation)));
}

Needs Communicator::needs_of(Operation& operation) const {
  if (operation.waiting_since_ns_ == 0) {
    operation.waiting_since_ns_ = now_ns();
  }
  return {operation.fingerprint_.sequence, end_of(operation), operation.waiting_since_ns_,
          &operation.record_, operation.peer()};
}

template <class Ready>
bool Communicator::spin(Ready& ready) {
  constexpr int kLooksPerTime = 32;
  const std::int64_t end = now_ns() + *spin_ns_;
  do {
    for (int i = 0; i < kLooksPerTime; ++i) {
      if (ready()) {
        return true;
      }
      relax();
    }
  } while (now_ns() < end);
  return false;
}

template <class Ready>
void Communicator::poll(Ready& ready, const Needs& needs) {
  constexpr std::chrono::microseconds kFirstPause{5};
  constexpr std::chrono::microseconds kLongestPause{500};
  auto pause = kFirstPause;
  while (!ready()) {
    end_if_lost(ready, needs);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

template <class Ready>
void Communicator::wait_until(Ready ready, const Needs& needs) {
  if (ready()) {
    return;
  }
  if (!spin_ns_) {  // not earlier: only now are all ranks surely there to say where they may run
    spin_ns_ = mirror_ != nullptr || control_.cores() >= size() ? kSpinNs : 0;
  }
  if (spin(ready)) {
    return;
  }
  const Waiting waiting(*journal_, needs);
  if (mirror_ != nullptr) {
    poll(ready, needs);
    return;
  }
  while (true) {
    Sleeper sleeper(control_);
    if (ready()) {
      return;
    }
    sleeper.sleep();
    end_if_lost(ready, needs);
  }
}

// What a peer did before it went may be here, and all that was needed of it.
template <class Ready>
void Communicator::end_if_lost(Ready& ready, const Needs& needs) {
  const auto failure = look_around(needs);
  if (failure && !ready()) {
    fail(*failure);
  }
}

std::optional<Failure> Communicator::look_around(const Needs& needs) {
  require_healthy();
  const std::int64_t now = now_ns();
  if (now - looked_ns_ < kLookEveryNs) {
    return std::nullopt;
  }
  looked_ns_ = now;
  control_.beat(now);
  journal_->beat(now);
  for (const auto& operation : unexecuted_) {
    agreement_.compare_with_present(operation->fingerprint_.sequence);
  }
  return watch_.look(needs);
}

}  // namespace lockstep::comm
