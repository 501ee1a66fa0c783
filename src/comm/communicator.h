// What a Group holds: one rank's side of a group. Enters operations, runs their steps in the order
// of issue, waits, and turns what goes wrong into the same failure on every rank.
//
// Used by one thread at a time. Nothing runs behind the caller's back: issue(), progress(), done()
// and wait() advance all outstanding operations.
#pragma once

#include "comm/agreement.h"
#include "comm/control.h"
#include "comm/journal.h"
#include "comm/meeting.h"
#include "comm/mirrored_control.h"
#include "comm/network.h"
#include "comm/operation.h"
#include "comm/presence.h"
#include "comm/transport.h"
#include "comm/watch.h"
#include "lockstep/group.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::comm {

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // `segment` is a control segment that this process mapped; takes the rank's place in it.
  struct Membership {
    std::shared_ptr<Segment> segment;
    std::shared_ptr<Meeting> meeting;  // where the group's members make further segments
    int rank = 0;
    int size = 1;
    // Of ranks that share no memory; the segment is then this rank's own. Null: they share it.
    std::shared_ptr<const Network> network = {};
    std::shared_ptr<Port> port = {};  // that brought the ranks together; open while the group lives
    // Of the world that the group was split from, with the members' ranks in it; null: it is one.
    std::shared_ptr<Journal> journal = nullptr;
    std::vector<int> world_ranks = {};
  };
  Communicator(const Membership& membership, const GroupOptions& options);

  int rank() const { return control_.rank(); }
  int size() const { return control_.ranks(); }
  const GroupOptions& options() const { return options_; }
  // As uniform_hosts() (schedule.h) says of the options' hosts.
  int ranks_per_host() const { return ranks_per_host_; }
  const Traffic& traffic() const { return traffic_; }
  Control& control() { return control_; }
  // Whether ranks read and write each other's memory.
  bool shares_memory() const { return network_ == nullptr; }
  // Null where they do.
  const Network* network() const { return network_.get(); }
  // What all ranks' operations move their messages with, one operation at a time.
  Transport& transport() { return *transport_; }
  // What messages between two ranks are moved with.
  Transport& message_transport() { return *message_transport_; }
  std::uint64_t group_id() const { return control_.group_id(); }
  Meeting& meeting() { return *meeting_; }
  const std::shared_ptr<Meeting>& shared_meeting() const { return meeting_; }
  const std::shared_ptr<Journal>& journal() const { return journal_; }
  const std::vector<int>& world_ranks() const { return watch_.world_ranks(); }

  // Takes the next place in the group's order, and runs what can run.
  Work issue(const std::shared_ptr<Operation>& operation);
  // The same for a message to or from one rank, apart from that order; in order on its line.
  Work issue_message(const std::shared_ptr<Operation>& message);
  void wait(Operation& operation);
  bool done(Operation& operation);
  // A Work is gone without having been waited for.
  void drop(const Operation& operation) noexcept;
  void progress();
  // The group's handle is gone: tells the peers, drops what is outstanding.
  void leave() noexcept;

  // Throws what ended the group: its own kind the first time on this rank, then GroupPoisoned.
  void require_healthy();
  // Records the failure for every rank and throws the group's first one.
  [[noreturn]] void fail(const Failure& failure);
  // Throws when one of `ranks` died: for waits outside of operations. (One that left may have had
  // what this rank still waits for.)
  void require_alive(const std::vector<int>& ranks);

  // How many of the group's allocations and splits there have been; names the next one's meeting.
  std::uint64_t next_exchange() { return ++exchanges_; }
  std::uint64_t next_allocation() { return ++allocations_; }

 private:
  enum class State : std::uint8_t { open, advancing, poisoned, left };

  static std::shared_ptr<const Presence> presence_of(const Membership& membership);
  std::shared_ptr<Journal> journal_of(const Membership& membership) const;
  static std::unique_ptr<Transport> transport_of(const Membership& membership, Control& control,
                                                 Control::Lane lane);
  void enter();
  // Runs `function`; whatever it throws poisons the group, here and for the peers.
  template <class Function>
  auto guarded(Function function);
  void become_poisoned(const std::string& text);
  // `group`: by which ranks' calls are compared.
  void note_entry(Operation& operation, std::uint64_t group);
  void make_room();
  void advance();
  bool run_steps(Operation& operation);
  void advance_messages();
  bool run_message(Operation& message);
  bool passes(Operation::Gate gate, const Operation& operation);
  bool finished(const Operation& operation);
  std::uint64_t end_of(const Operation& operation) const;
  Needs needs_of(Operation& operation) const;
  void conclude(Operation& operation);

  template <class Ready>
  void wait_until(Ready ready, const Needs& needs);
  template <class Ready>
  bool spin(Ready& ready);
  // Where no peer can wake this rank.
  template <class Ready>
  void poll(Ready& ready, const Needs& needs);
  // Peers that share no memory see a failure only when they are told.
  void tell_failure() noexcept;
  void say_goodbye() noexcept;
  // At most 20 times a second: beats, compares fingerprints that are there, looks after peers;
  // returns why the wait can't end.
  std::optional<Failure> look_around(const Needs& needs);
  template <class Ready>
  void end_if_lost(Ready& ready, const Needs& needs);

  Control control_;
  std::shared_ptr<const Presence> presence_;  // null where ranks are threads
  std::shared_ptr<Journal> journal_;
  std::shared_ptr<Meeting> meeting_;
  std::shared_ptr<Port> port_;  // ends last
  std::shared_ptr<const Network> network_;
  std::unique_ptr<MirroredControl> mirror_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Transport> message_transport_;
  GroupOptions options_;
  int ranks_per_host_;
  Agreement agreement_;
  Watch watch_;
  std::optional<std::int64_t> spin_ns_;
  State state_ = State::open;
  Traffic traffic_;
  std::deque<std::shared_ptr<Operation>> unexecuted_;
  std::vector<std::shared_ptr<Operation>> messages_;  // not executed
  std::uint64_t issued_ = 0;
  std::uint64_t messages_issued_ = 0;
  std::uint64_t planned_steps_ = 0;  // of all operations issued
  std::uint64_t stepped_ = 0;
  std::uint64_t exchanges_ = 0;
  std::uint64_t allocations_ = 0;
  std::int64_t unawaited_ = 0;
  std::int64_t looked_ns_ = 0;
  int process_;  // a forked child must not speak for its parent
};

}  // namespace lockstep::comm
