// How the members of a group come to share a segment: one exchange serves the world's control
// segment, symmetric memory and the groups that split() makes.
//
// An exchange has three parts on every rank: all members come; the owner (rank 0) creates the
// segment and hands it out; each member prepares its part. It ends the same way everywhere: with
// the segment on all ranks, or with the first failure of any of them on all ranks.
#pragma once

#include "comm/segment.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::comm {

struct Exchange {
  std::string key;   // the same on all members, different from every other exchange under way
  std::string what;  // for errors: "rendezvous of group 'world'"
  int rank = 0;
  int size = 1;
  std::int64_t bytes = 0;
  std::chrono::milliseconds deadline = {};
  // On the owner before it creates the segment, and on it before anybody else sees it.
  std::function<void()> before_create = [] {};
  std::function<void(Segment&)> initialise = [](Segment&) {};
  // On every member with its mapping; what it throws ends the exchange on all.
  std::function<void(const std::shared_ptr<Segment>&)> prepare =
      [](const std::shared_ptr<Segment>&) {};
  // On every member while it waits, some 20 times a second; may throw.
  std::function<void()> check = [] {};
};

class Meeting {
 public:
  virtual ~Meeting() = default;
  // Collective over the members. Throws TimedOut naming who never came, PeerLost naming who died on
  // the way, or what any member's functions threw.
  virtual std::shared_ptr<Segment> hold(const Exchange& exchange) = 0;
  // Whether a member can end without its handle's destructor running.
  virtual bool members_are_processes() const = 0;
};

// Between threads of this process that hold the same Meeting.
std::shared_ptr<Meeting> meeting_of_threads();

// Between processes of one user on this host, in its abstract socket namespace. `job` is the nonce
// that all of them know.
std::shared_ptr<Meeting> meeting_of_processes(const std::string& job);

// Of this process alone; nobody to meet.
std::shared_ptr<Meeting> meeting_of_one();

// "ranks 1 and 3", "rank 2": for texts.
std::string list_of_ranks(const std::vector<int>& ranks);

}  // namespace lockstep::comm
