// The control words of a group whose ranks share no memory: each rank has a control segment of its
// own, and its peers' words in it follow theirs by messages. Everything that reads a Control works
// on it: agreement on fingerprints, the watch over peers, the first failure.
//
// Words only grow, so an update carries the newest and whatever fingerprints it makes visible; at
// most one is on its way to each peer, and what happens meanwhile goes with the next. Cost: under
// 500 bytes per peer and change, none of them counted as traffic.
#pragma once

#include "comm/control.h"
#include "comm/port.h"
#include "comm/world_table.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep::comm {

class MirroredControl {
 public:
  // Channels of the port that one group's words take, from the first.
  static constexpr int kChannels = 2;

  // `members` are the group's ranks as the port numbers them, in the order of the group.
  // `control` is this rank's own segment and must outlive the mirror.
  MirroredControl(std::shared_ptr<Port> port, std::vector<int> members, int first_channel,
                  Control& control);
  ~MirroredControl();
  MirroredControl(const MirroredControl&) = delete;
  MirroredControl& operator=(const MirroredControl&) = delete;

  // Tells peers what this rank has published since, takes in what they have. Never waits.
  void exchange();
  // The same until everything published has left, or the patience is over; says whether it has.
  bool flush(std::chrono::milliseconds patience);

 private:
  static constexpr std::size_t kFingerprints = 2;  // of one update

  struct Update {
    Control::Words words;
    std::uint32_t count = 0;
    std::array<Fingerprint, kFingerprints> fingerprints = {};
  };
  struct Peer {
    int rank = 0;  // in the group
    int address = 0;
    Update outgoing = {};
    Update incoming = {};
    FailureMessage failure_in = {};
    std::unique_ptr<Port::Transfer> sending;
    std::unique_ptr<Port::Transfer> receiving;
    std::unique_ptr<Port::Transfer> hearing;  // of the group's failure
    std::unique_ptr<Port::Transfer> failing;  // telling it
    bool knows_failure = false;
    std::int64_t sent_ns = 0;
  };

  void listen(Peer& peer);
  void take_in(Peer& peer);
  void note_station(const Peer& peer);
  void tell(Peer& peer);
  bool told(Peer& peer);

  std::shared_ptr<Port> port_;
  int channel_;
  Control& control_;
  WorldTable table_;  // of the group's ranks: peers' stations too follow what they say
  std::optional<FailureMessage> failure_out_;  // once set, never changed: it is being sent
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace lockstep::comm
