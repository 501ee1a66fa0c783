// Exchanges between processes: rank 0 listens under a name made of the job and the key, the others
// connect, and a connection that hangs up is a member that died.
//
//   member → owner   hello            who I am, how long I will wait
//   owner → member   segment + fd     once all have come
//   member → owner   prepared         its part is ready
//   owner → member   complete         all parts are
//   either           failed           instead of any of these; ends the exchange on all
#include "comm/failure.h"
#include "comm/meeting.h"
#include "comm/unix_socket.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <thread>
#include <unistd.h>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kVersion = 1;
constexpr milliseconds kCheckEvery{50};
constexpr milliseconds kRetryEvery{2};
// What a member gives its owner on top of the deadline, so that the owner's verdict, which names
// the missing ranks, comes first.
constexpr milliseconds kGrace{1000};

struct Message {
  enum class Type : std::uint32_t { hello, segment, prepared, complete, failed };
  Type type = Type::hello;
  std::uint32_t version = kVersion;
  std::int32_t rank = -1;
  std::int32_t size = 0;
  std::int64_t bytes = 0;
  std::int64_t patience_ms = 0;
  Failure::Kind kind = Failure::Kind::poisoned;
  std::int32_t failed_rank = -1;
  std::array<char, 1500> text = {};  // hello: the key; failed: why

  void set_text(const std::string& value) {
    std::copy_n(value.begin(), std::min(value.size(), text.size() - 1), text.begin());
  }
  Failure failure() const { return {kind, failed_rank, text.data()}; }
  static Message failed(const Failure& failure) {
    Message message;
    message.type = Type::failed;
    message.kind = failure.kind;
    message.failed_rank = failure.rank;
    message.set_text(failure.text);
    return message;
  }
};

bool send(const FileDescriptor& socket, const Message& message, int carried = -1) {
  return send_bytes(socket, &message, sizeof message, carried);
}

std::string name_of_socket(const std::string& job, const std::string& key) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: names are short, keys are not
  for (const char c : job + '\n' + key) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "lockstep-" + std::to_string(::geteuid()) + "-";
  for (int shift = 60; shift >= 0; shift -= 4) {
    name += kDigits[(hash >> shift) & 15];
  }
  return name;
}

std::string within(const Exchange& exchange) {
  return " within " + std::to_string(exchange.deadline.count()) + " ms";
}

// What both sides do: keep the clock and the caller's check.
class Side {
 public:
  explicit Side(const Exchange& exchange) : exchange_(exchange) { restart_clock(); }

 protected:
  void restart_clock() { end_ = steady_clock::now() + exchange_.deadline; }
  void shorten_clock(milliseconds patience) {
    end_ = std::min(end_, steady_clock::now() + patience);
  }
  milliseconds time_left() const {
    return std::chrono::duration_cast<milliseconds>(end_ - steady_clock::now());
  }
  [[noreturn]] void lost(int rank) const {
    throw PeerLost(
        rank, exchange_.what + ": rank " + std::to_string(rank) + " died or gave up on the way");
  }
  Failure own_failure(const std::exception& error) const {
    return failure_of(error, exchange_.what + ", rank " + std::to_string(exchange_.rank));
  }

  const Exchange& exchange_;
  steady_clock::time_point end_;
};

class Owner : public Side {
 public:
  Owner(const Exchange& exchange, std::string name)
      : Side(exchange),
        name_(std::move(name)),
        members_(static_cast<std::size_t>(exchange.size)),
        prepared_(static_cast<std::size_t>(exchange.size), false) {}

  std::shared_ptr<Segment> run() {
    try {
      return serve();
    } catch (const std::exception& error) {
      const Failure failure = own_failure(error);
      tell_all(Message::failed(failure));
      raise(failure);
    }
  }

 private:
  std::shared_ptr<Segment> serve();
  FileDescriptor listen();
  void gather(const FileDescriptor& listener);
  void welcome(FileDescriptor socket);
  void expect_silence();
  void collect();
  void hear(int rank);
  std::vector<int> missing() const;
  void tell_all(const Message& message, int carried = -1);

  std::string name_;
  std::vector<FileDescriptor> members_;  // by rank; the owner's own stays empty
  std::vector<bool> prepared_;
};

std::shared_ptr<Segment> Owner::serve() {
  {
    const FileDescriptor listener = listen();
    gather(listener);
  }
  exchange_.before_create();
  const auto segment = Segment::create(exchange_.bytes);
  exchange_.initialise(*segment);
  Message message;
  message.type = Message::Type::segment;
  message.bytes = exchange_.bytes;
  tell_all(message, segment->descriptor());
  exchange_.prepare(segment);
  restart_clock();
  collect();
  message.type = Message::Type::complete;
  tell_all(message);
  return segment;
}

FileDescriptor Owner::listen() {
  while (true) {
    if (auto listener = listen_abstract(name_)) {
      return std::move(*listener);
    }
    exchange_.check();
    if (time_left() <= milliseconds::zero()) {
      throw TimedOut(exchange_.what + ": another process holds its name '" + name_ + "'" +
                     within(exchange_) +
                     ": is a second job running with the same LOCKSTEP_JOB or MASTER_PORT?");
    }
    std::this_thread::sleep_for(kRetryEvery);
  }
}

void Owner::gather(const FileDescriptor& listener) {
  while (!missing().empty()) {
    if (readable(listener, std::min(kCheckEvery, std::max(time_left(), milliseconds(1))))) {
      if (auto socket = accept_waiting(listener)) {
        welcome(std::move(*socket));
      }
      continue;
    }
    expect_silence();
    exchange_.check();
    if (time_left() <= milliseconds::zero()) {
      throw TimedOut(exchange_.what + ": " + list_of_ranks(missing()) + " never came" +
                     within(exchange_));
    }
  }
}

// Takes a connection's hello. A stranger's, or one that says nothing, is turned away.
void Owner::welcome(FileDescriptor socket) {
  Message hello;
  if (peer_of(socket).user != ::geteuid() || !readable(socket, kGrace) ||
      !receive_bytes(socket, &hello, sizeof hello) || hello.text.data() != exchange_.key) {
    return;
  }
  const std::string who = exchange_.what + ": a process says it is rank " +
                          std::to_string(hello.rank) + " of " + std::to_string(hello.size);
  if (hello.version != kVersion) {
    throw SystemError(who + " with another build of Lockstep: start all ranks from one build");
  }
  if (hello.size != exchange_.size || hello.rank < 1 || hello.rank >= exchange_.size) {
    const Failure failure{Failure::Kind::usage, -1,
                          who + ", expected ranks 1 to " + std::to_string(exchange_.size - 1) +
                              " of " + std::to_string(exchange_.size) +
                              ": RANK and WORLD_SIZE must fit"};
    send(socket, Message::failed(failure));
    raise(failure);
  }
  auto& place = members_[static_cast<std::size_t>(hello.rank)];
  if (place.valid()) {
    const Failure failure{Failure::Kind::usage, -1,
                          who + ", and so did another: each process needs its own RANK"};
    send(socket, Message::failed(failure));
    raise(failure);
  }
  place = std::move(socket);
  shorten_clock(milliseconds(hello.patience_ms));
}

// Members have nothing to say before they got the segment, unless they fail or die.
void Owner::expect_silence() {
  for (int r = 1; r < exchange_.size; ++r) {
    const auto& member = members_[static_cast<std::size_t>(r)];
    if (member.valid() && readable(member, milliseconds::zero())) {
      hear(r);
    }
  }
}

void Owner::collect() {
  for (int r = 1; r < exchange_.size; ++r) {
    const auto index = static_cast<std::size_t>(r);
    while (!prepared_[index]) {
      if (readable(members_[index], kCheckEvery)) {
        hear(r);
        continue;
      }
      exchange_.check();
      if (time_left() <= milliseconds::zero()) {
        throw TimedOut(exchange_.what + ": rank " + std::to_string(r) + " did not finish its part" +
                       within(exchange_));
      }
    }
  }
}

void Owner::hear(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  Message message;
  if (!receive_bytes(members_[index], &message, sizeof message)) {
    lost(rank);
  }
  if (message.type == Message::Type::failed) {
    raise(message.failure());
  }
  prepared_[index] = true;
}

std::vector<int> Owner::missing() const {
  std::vector<int> ranks;
  for (int r = 1; r < exchange_.size; ++r) {
    if (!members_[static_cast<std::size_t>(r)].valid()) {
      ranks.push_back(r);
    }
  }
  return ranks;
}

void Owner::tell_all(const Message& message, int carried) {
  for (const auto& member : members_) {
    if (member.valid()) {
      send(member, message, carried);  // one that is gone shows when it is heard next
    }
  }
}

class Member : public Side {
 public:
  Member(const Exchange& exchange, std::string name) : Side(exchange), name_(std::move(name)) {}

  std::shared_ptr<Segment> run() {
    connect();
    try {
      return take_part();
    } catch (const std::exception& error) {
      const Failure failure = own_failure(error);
      send(owner_, Message::failed(failure));
      raise(failure);
    }
  }

 private:
  void connect();
  std::shared_ptr<Segment> take_part();
  FileDescriptor hear(Message::Type expected);

  std::string name_;
  FileDescriptor owner_;
};

void Member::connect() {
  while (true) {
    if (auto socket = connect_abstract(name_)) {
      owner_ = std::move(*socket);
      break;
    }
    exchange_.check();
    if (time_left() <= milliseconds::zero()) {
      throw TimedOut(exchange_.what + ": rank 0 never came" + within(exchange_));
    }
    std::this_thread::sleep_for(kRetryEvery);
  }
  if (const Peer peer = peer_of(owner_); peer.user != ::geteuid()) {
    throw SystemError(exchange_.what + ": expected rank 0 to run as user " +
                      std::to_string(::geteuid()) + ", got process " +
                      std::to_string(peer.process) + " of user " + std::to_string(peer.user) +
                      ": start all ranks as one user");
  }
}

std::shared_ptr<Segment> Member::take_part() {
  Message hello;
  hello.rank = exchange_.rank;
  hello.size = exchange_.size;
  hello.patience_ms = time_left().count();
  hello.set_text(exchange_.key);
  send(owner_, hello);
  auto segment = Segment::adopt(hear(Message::Type::segment), exchange_.bytes);
  exchange_.prepare(segment);
  Message prepared;
  prepared.type = Message::Type::prepared;
  send(owner_, prepared);
  restart_clock();
  hear(Message::Type::complete);
  return segment;
}

FileDescriptor Member::hear(Message::Type expected) {
  while (!readable(owner_, kCheckEvery)) {
    exchange_.check();
    if (time_left() + kGrace <= milliseconds::zero()) {
      throw TimedOut(exchange_.what + ": rank 0 did not answer" + within(exchange_));
    }
  }
  Message message;
  FileDescriptor carried;
  if (!receive_bytes(owner_, &message, sizeof message, &carried)) {
    lost(0);
  }
  if (message.type == Message::Type::failed) {
    raise(message.failure());
  }
  if (message.type != expected || (expected == Message::Type::segment &&
                                   (!carried.valid() || message.bytes != exchange_.bytes))) {
    throw SystemError(exchange_.what + ": rank 0 offers " + std::to_string(message.bytes) +
                      " bytes, expected " + std::to_string(exchange_.bytes) +
                      ": start all ranks from one build");
  }
  return carried;
}

class MeetingOfProcesses : public Meeting {
 public:
  explicit MeetingOfProcesses(std::string job) : job_(std::move(job)) {}

  std::shared_ptr<Segment> hold(const Exchange& exchange) override {
    const std::string name = name_of_socket(job_, exchange.key);
    return exchange.rank == 0 ? Owner(exchange, name).run() : Member(exchange, name).run();
  }
  bool members_are_processes() const override { return true; }

 private:
  std::string job_;
};

}  // namespace

std::shared_ptr<Meeting> meeting_of_processes(const std::string& job) {
  return std::make_shared<MeetingOfProcesses>(job);
}

}  // namespace lockstep::comm
