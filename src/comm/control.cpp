#include "comm/control.h"

#include "base/range.h"
#include "comm/futex.h"
#include "comm/world_table.h"
#include "lockstep/error.h"

#include <sys/random.h>

#include <bit>
#include <sched.h>

namespace lockstep::comm {
namespace {

constexpr std::uint64_t kMagic = 0x706574736b636f6c;  // "lockstep"
constexpr std::uint32_t kVersion = 2;

// Of the slots and stages.
std::int64_t message_bytes(std::int64_t ranks) {
  return ranks * (Control::kSlots * Control::kSlotBytes + Control::kStages * Control::kStageBytes);
}

std::uint64_t random_id() {
  std::uint64_t id = 0;
  if (::getrandom(&id, sizeof id, 0) != sizeof id) {
    throw_errno("getrandom for a group's id");
  }
  return id;
}

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t Control::bytes(int ranks) {
  const std::int64_t words =
      sizeof(Header) + ranks * (sizeof(Board) + sizeof(Ring)) + WorldTable::bytes(ranks);
  return round_up(words, page_bytes()) + message_bytes(ranks) +
         kLanes * ranks * std::int64_t{ranks} * static_cast<std::int64_t>(sizeof(Line));
}

void Control::initialise(Segment& segment, int ranks) {
  auto* header = reinterpret_cast<Header*>(segment.data());
  header->magic = kMagic;
  header->version = kVersion;
  header->ranks = ranks;
  header->group_id = random_id();
}

Control::Control(std::shared_ptr<Segment> segment, int rank, int ranks)
    : segment_(std::move(segment)), rank_(rank), ranks_(ranks) {
  std::byte* base = segment_->data();
  header_ = reinterpret_cast<Header*>(base);
  if (header_->magic != kMagic || header_->version != kVersion || header_->ranks != ranks) {
    throw SystemError("control segment: expected version " + std::to_string(kVersion) + " for " +
                      std::to_string(ranks) + " ranks, got version " +
                      std::to_string(header_->version) + " for " + std::to_string(header_->ranks) +
                      ": all ranks must run the same build");
  }
  boards_ = reinterpret_cast<Board*>(base + sizeof(Header));
  rings_ = reinterpret_cast<Ring*>(boards_ + ranks);
  table_ = reinterpret_cast<std::byte*>(rings_ + ranks);
  lines_ = reinterpret_cast<Line*>(base + bytes(ranks)) - kLanes * std::int64_t{ranks} * ranks;
  slots_ = reinterpret_cast<std::byte*>(lines_) - message_bytes(ranks);
  stages_ = slots_ + ranks * kSlots * kSlotBytes;
  note_processors();
  beat();
  boards_[rank].state.store(State::active, std::memory_order_release);
}

std::int64_t Control::last_seen_ns(int rank) const {
  return boards_[rank].last_seen_ns.load(std::memory_order_relaxed);
}

bool Control::left(int rank) const {
  return boards_[rank].state.load(std::memory_order_acquire) == State::left;
}

const Fingerprint& Control::posted(int rank, std::uint64_t sequence) const {
  return rings_[rank][sequence % kRing];
}

void Control::post(const Fingerprint& fingerprint) {
  rings_[rank_][fingerprint.sequence % kRing] = fingerprint;
  boards_[rank_].issued.store(fingerprint.sequence, std::memory_order_seq_cst);
  announce();
}

void Control::publish_stepped(std::uint64_t steps) {
  boards_[rank_].stepped.store(steps, std::memory_order_seq_cst);
  announce();
}

void Control::beat(std::int64_t at_ns) {
  boards_[rank_].last_seen_ns.store(at_ns, std::memory_order_relaxed);
}

void Control::leave() noexcept {
  boards_[rank_].state.store(State::left, std::memory_order_seq_cst);
  announce();
}

Control::Words Control::words(int rank) const { return {issued(rank), stepped(rank), left(rank)}; }

void Control::mirror(int rank, const Words& words, std::span<const Fingerprint> fingerprints) {
  for (const Fingerprint& fingerprint : fingerprints) {
    rings_[rank][fingerprint.sequence % kRing] = fingerprint;
  }
  Board& board = boards_[rank];
  board.last_seen_ns.store(now_ns(), std::memory_order_relaxed);
  board.stepped.store(words.stepped, std::memory_order_release);
  board.issued.store(words.issued, std::memory_order_release);
  board.state.store(words.left ? State::left : State::active, std::memory_order_release);
}

void Control::note_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    return;  // more than 1024 processors: cores() then says 0 and nobody spins
  }
  auto& words = boards_[rank_].processors;
  for (std::size_t word = 0; word < words.size(); ++word) {
    std::uint64_t bits = 0;
    for (std::size_t bit = 0; bit < 64; ++bit) {
      bits |= static_cast<std::uint64_t>(CPU_ISSET(word * 64 + bit, &set) != 0) << bit;
    }
    words[word].store(bits, std::memory_order_relaxed);
  }
}

int Control::cores() const {
  int count = 0;
  for (std::size_t word = 0; word < boards_[0].processors.size(); ++word) {
    std::uint64_t bits = 0;
    for (int r = 0; r < ranks_; ++r) {
      bits |= boards_[r].processors[word].load(std::memory_order_relaxed);
    }
    count += std::popcount(bits);
  }
  return count;
}

void Control::fail(const Failure& failure) {
  header_->failure.record(failure);
  announce();
}

std::byte* Control::slot(int index, int rank) const {
  return slots_ + (index * ranks_ + rank) * kSlotBytes;
}

std::byte* Control::stage(int index, int rank) const {
  return stages_ + (index * ranks_ + rank) * kStageBytes;
}

Line& Control::line(Lane lane, int from, int to) const {
  const std::int64_t set = static_cast<std::int64_t>(lane) * ranks_ * ranks_;
  return lines_[set + std::int64_t{from} * ranks_ + to];
}

std::uint32_t Control::begin_sleep() {
  header_->sleepers.fetch_add(1, std::memory_order_seq_cst);
  return header_->events.load(std::memory_order_seq_cst);
}

void Control::sleep(std::uint32_t ticket, std::chrono::milliseconds timeout) {
  futex_wait(header_->events, ticket, timeout);
}

void Control::end_sleep() { header_->sleepers.fetch_sub(1, std::memory_order_relaxed); }

void Control::announce() {
  if (header_->sleepers.load(std::memory_order_seq_cst) > 0) {
    header_->events.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(header_->events);
  }
}

}  // namespace lockstep::comm
