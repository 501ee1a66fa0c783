#include "comm/mirrored_control.h"

#include <algorithm>
#include <thread>
#include <type_traits>

namespace lockstep::comm {
namespace {

// A peer that waits hears this often of a rank that has nothing new to say.
constexpr std::int64_t kBeatNs = 100'000'000;

template <class Plain>
std::span<const std::byte> bytes_of(const Plain& value) {
  static_assert(std::is_trivially_copyable_v<Plain>);
  return std::as_bytes(std::span(&value, 1));
}

template <class Plain>
std::span<std::byte> room_of(Plain& value) {
  static_assert(std::is_trivially_copyable_v<Plain>);
  return std::as_writable_bytes(std::span(&value, 1));
}

// Whether nothing is on its way; a transfer that has ended is let go.
bool idle(std::unique_ptr<Port::Transfer>& transfer) {
  if (transfer != nullptr && transfer->done()) {
    transfer.reset();
  }
  return transfer == nullptr;
}

}  // namespace

MirroredControl::MirroredControl(std::shared_ptr<Port> port, std::vector<int> members,
                                 int first_channel, Control& control)
    : port_(std::move(port)),
      channel_(first_channel),
      control_(control),
      table_(control.table(), control.ranks()) {
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (static_cast<int>(r) == control.rank()) {
      continue;
    }
    auto peer = std::make_unique<Peer>();
    peer->rank = static_cast<int>(r);
    peer->address = members[r];
    peer->hearing = port_->receive(peer->address, channel_ + 1, room_of(peer->failure_in));
    listen(*peer);
    table_.arrive(peer->rank, /*process=*/0);
    peers_.push_back(std::move(peer));
  }
}

MirroredControl::~MirroredControl() {
  for (const auto& peer : peers_) {
    for (auto* receiving : {&peer->receiving, &peer->hearing}) {
      if (*receiving != nullptr) {
        (*receiving)->cancel();
      }
    }
    if (!idle(peer->sending) || !idle(peer->failing)) {
      port_->abandon();  // MPI may still read what lies here: it must not be ended in good order
    }
  }
}

void MirroredControl::listen(Peer& peer) {
  peer.receiving = port_->receive(peer.address, channel_, room_of(peer.incoming));
}

void MirroredControl::exchange() {
  if (control_.failed() && !failure_out_) {
    failure_out_.emplace().set(control_.failure());
  }
  for (const auto& peer : peers_) {
    take_in(*peer);
    tell(*peer);
  }
}

void MirroredControl::take_in(Peer& peer) {
  while (peer.receiving != nullptr && idle(peer.receiving)) {
    const Update& update = peer.incoming;
    control_.mirror(peer.rank, update.words, std::span(update.fingerprints).first(update.count));
    note_station(peer);
    if (!update.words.left) {
      listen(peer);
    }
  }
  if (peer.hearing != nullptr && idle(peer.hearing)) {
    peer.knows_failure = true;
    control_.fail(peer.failure_in.get());
  }
}

void MirroredControl::note_station(const Peer& peer) {
  const Update& update = peer.incoming;
  table_.beat(peer.rank, now_ns());
  if (update.count > 0) {
    FlightRecord record = record_of(update.fingerprints[update.count - 1]);
    record.number = record.sequence;
    record.group = control_.group_id();
    record.issued_ns = now_ns();  // by this host's clock, which is not the peer's
    table_.enter(peer.rank, record);
  }
  if (update.words.left) {
    table_.leave(peer.rank);
  }
}

void MirroredControl::tell(Peer& peer) {
  if (failure_out_ && !peer.knows_failure) {
    peer.failing = port_->send(peer.address, channel_ + 1, bytes_of(*failure_out_));
    peer.knows_failure = true;
  }
  if (!idle(peer.sending) || peer.outgoing.words.left) {
    return;
  }
  const Control::Words own = control_.words(control_.rank());
  Update next;
  next.words = own;
  const std::uint64_t known = peer.outgoing.words.issued;
  next.count =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kFingerprints, own.issued - known));
  for (std::uint32_t i = 0; i < next.count; ++i) {
    next.fingerprints[i] = control_.posted(control_.rank(), known + 1 + i);
  }
  next.words.issued = known + next.count;
  next.words.left = own.left && next.words.issued == own.issued;
  const std::int64_t now = now_ns();
  if (next.words == peer.outgoing.words && now - peer.sent_ns < kBeatNs) {
    return;
  }
  peer.outgoing = next;
  peer.sent_ns = now;
  peer.sending = port_->send(peer.address, channel_, bytes_of(peer.outgoing));
}

bool MirroredControl::told(Peer& peer) {
  return peer.outgoing.words == control_.words(control_.rank()) && idle(peer.sending) &&
         idle(peer.failing);
}

bool MirroredControl::flush(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    exchange();
    if (std::ranges::all_of(peers_, [this](const auto& peer) { return told(*peer); })) {
      return true;
    }
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace lockstep::comm
